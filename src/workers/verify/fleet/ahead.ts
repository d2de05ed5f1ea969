// Calls that this process has taken before there was a permit for them: each begins the moment a call of this process
// ends well, with that call's permit, so that the upstream's slots do not stand empty while Redis is told. They are held
// for a moment only: what does not get its turn soon is given back, for others to take.

import type { TakenCall } from './exchange-reply.ts';

/** Where calls take longer than this, the way to Redis is nothing to them. */
const QUICK_MS = 250;
const HELD_MS = 200;
const REST_MS = 1_000;

export class AheadLine {
  private line: { call: TakenCall; since: number }[] = [];
  private readonly giveBack: (calls: TakenCall[]) => void;
  private timer: NodeJS.Timeout | null = null;
  private restUntil = 0;

  constructor(giveBack: (calls: TakenCall[]) => void) {
    this.giveBack = giveBack;
  }

  get size(): number {
    return this.line.length;
  }

  get tokens(): string[] {
    return this.line.map(({ call }) => call.token);
  }

  /** May any be taken, with calls that usually take so long? */
  worthwhile(usualMs: number | null): boolean {
    return usualMs !== null && usualMs <= QUICK_MS && performance.now() >= this.restUntil;
  }

  hold(call: TakenCall): void {
    this.line.push({ call, since: performance.now() });
    this.timer ??= setTimeout(() => this.look(), HELD_MS);
  }

  /** The next one to begin. */
  next(): TakenCall | null {
    const first = this.line[0];
    // A process that slept may no longer begin what others have taken over meanwhile.
    if (first === undefined || performance.now() - first.since > 2 * HELD_MS) return null;
    this.line.shift();
    return first.call;
  }

  /** Gives all of it back. */
  clear(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const calls = this.line.map(({ call }) => call);
    this.line = [];
    if (calls.length > 0) this.giveBack(calls);
  }

  private look(): void {
    this.timer = null;
    const first = this.line[0];
    if (first === undefined) return;
    const left = HELD_MS - (performance.now() - first.since);
    if (left > 0) this.timer = setTimeout(() => this.look(), left);
    else {
      this.restUntil = performance.now() + REST_MS;
      this.clear();
    }
  }
}
