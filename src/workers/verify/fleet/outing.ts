// One taken call on its way: itself, and the smaller calls that ask its queries again where it hangs. The first answer
// to a query counts; a failure counts only when no other call with that query is out.

import type { TakenCall, TakenItem } from './exchange-reply.ts';
import type { Fate } from './settlement.ts';

export interface Out {
  permit: string;
  items: readonly TakenItem[];
  abort: AbortController;
  /** Queries that have been asked again in smaller calls. */
  hedged: Set<string>;
  /** It hung until nobody waited for it any more. */
  abandoned: boolean;
}

interface Open {
  out: number;
  alone: number;
}

export class Outing {
  readonly call: TakenCall;
  readonly since = performance.now();
  private readonly open = new Map<string, Open>();
  private readonly outs = new Set<Out>();

  constructor(call: TakenCall) {
    this.call = call;
    for (const item of call.items) this.open.set(item.key, { out: 0, alone: 0 });
  }

  /** Nothing is out. */
  get over(): boolean {
    return this.outs.size === 0;
  }

  begin(permit: string, items: readonly TakenItem[]): Out {
    const out = { permit, items, abort: new AbortController(), hedged: new Set<string>(), abandoned: false };
    this.outs.add(out);
    this.move(out, 1);
    return out;
  }

  /** Of `items` those that have no answer yet. */
  unanswered(items: readonly TakenItem[]): TakenItem[] {
    return items.filter((item) => this.open.has(item.key));
  }

  /** `out` is over: the fates that count, of its queries that have none yet. */
  end(out: Out, fates: readonly Fate[]): [TakenItem, Fate][] {
    this.outs.delete(out);
    this.move(out, -1);
    const decided = out.items.flatMap((item, i): [TakenItem, Fate][] => {
      const open = this.open.get(item.key);
      const fate = fates[i] as Fate;
      return open && (fate.kind === 'answered' || open.out === 0) ? [[item, fate]] : [];
    });
    for (const [item] of decided) this.open.delete(item.key);
    for (const other of this.outs) if (this.needless(other)) other.abort.abort();
    return decided;
  }

  /** After smaller calls have begun. */
  prune(): void {
    for (const out of this.outs) if (this.needless(out)) out.abort.abort();
  }

  /** Breaks off what went out with this permit, if that is one of its own. */
  abandon(permit: string): void {
    for (const out of this.outs) {
      if (out.permit !== permit) continue;
      out.abandoned = true;
      out.abort.abort();
    }
  }

  /** Whatever it is still to bring is answered, or asked by itself. */
  private needless(out: Out): boolean {
    return out.items.every(({ key }) => {
      const open = this.open.get(key);
      return !open || (out.items.length > 1 && open.alone > 0);
    });
  }

  abort(): void {
    for (const out of this.outs) out.abort.abort();
  }

  private move(out: Out, by: number): void {
    for (const { key } of out.items) {
      const open = this.open.get(key);
      if (!open) continue;
      open.out += by;
      if (out.items.length === 1) open.alone += by;
    }
  }
}
