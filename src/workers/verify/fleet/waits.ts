// The queries that this process waits for, by flight, and who is to be told. A query that is given up stays known
// until Redis has heard of it: a call with it may be on its way here.

import type { Answer } from '../client.ts';
import type { Query } from '../wire-request.ts';

export type FleetAnswer = Answer & {
  /** It was kept from an earlier call. */
  cached: boolean;
};

export type Tell = (answer: FleetAnswer) => void;

/** What queries must have in common to be wanted in one script call. */
export interface WaitGroup {
  epoch: string;
  cache: boolean;
  ttlMs: number;
  budget: number | null;
}

export interface Wait {
  readonly key: string;
  readonly query: Query;
  readonly group: WaitGroup;
  readonly told: Set<Tell>;
  state: 'new' | 'sent' | 'joined';
  /** Some call of this process has it, or had it. */
  taken: boolean;
  /** When the first of those who wait gives up, on the monotonic clock. */
  dueAt: number;
  /** Not known to Redis at the last look. */
  missing: boolean;
  since: number;
}

export class Waits {
  private readonly all = new Map<string, Wait>();

  get size(): number {
    return this.all.size;
  }

  get(key: string): Wait | undefined {
    return this.all.get(key);
  }

  has(wait: Wait): boolean {
    return this.all.get(wait.key) === wait;
  }

  add(key: string, query: Query, group: WaitGroup): Wait {
    const since = performance.now();
    const dueAt = Number.POSITIVE_INFINITY;
    const wait: Wait = { key, query, group, told: new Set(), state: 'new', missing: false, taken: false, since, dueAt };
    this.all.set(key, wait);
    return wait;
  }

  taken(key: string): void {
    const wait = this.all.get(key);
    if (wait) wait.taken = true;
  }

  leftMs(key: string): number {
    return (this.all.get(key)?.dueAt ?? Number.POSITIVE_INFINITY) - performance.now();
  }

  answer(key: string, answer: FleetAnswer): void {
    const wait = this.all.get(key);
    this.all.delete(key);
    for (const tell of wait?.told ?? []) tell(answer);
  }

  /** Everybody who waits. */
  open(): [Wait, Tell][] {
    return [...this.all.values()].flatMap((wait) => [...wait.told].map((tell): [Wait, Tell] => [wait, tell]));
  }

  /** Answers those of `open` who still wait; gives the flights that nobody here waits for any more and that Redis knows. */
  giveUp(open: readonly [Wait, Tell][], answer: FleetAnswer): string[] {
    const left: string[] = [];
    for (const [wait, tell] of open) {
      if (!wait.told.delete(tell)) continue;
      tell(answer);
      if (wait.told.size > 0 || !this.has(wait)) continue;
      if (wait.state === 'new') this.all.delete(wait.key);
      else left.push(wait.key);
    }
    return left;
  }

  /** Redis knows that we left: forgets them, but for those that somebody came to want meanwhile. */
  left(keys: readonly string[]): Wait[] {
    const wanted: Wait[] = [];
    for (const key of keys) {
      const wait = this.all.get(key);
      if (wait && wait.told.size > 0) wanted.push(wait);
      else this.all.delete(key);
    }
    return wanted;
  }

  olderThan(ms: number): string[] {
    const before = performance.now() - ms;
    return [...this.all.values()]
      .filter((wait) => wait.state === 'joined' && wait.told.size > 0 && wait.since <= before)
      .map((wait) => wait.key);
  }
}
