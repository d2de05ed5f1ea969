// The slots of one lane in this process: so many members are at work at once, the others follow in the order in which they
// came. A job's members are begun together, so the next job's are begun while its own still wait: one row of slots ahead,
// so that no slot stands empty while the ledger answers, and no more, so that what a death gives back stays little.

import { setImmediate as turn } from 'node:timers/promises';

/** Episodes that take no time must not keep heartbeats and answers from their turn. */
const TURN_MS = 5;

export class LaneSlots {
  private readonly size: number;
  private free: number;
  /** Begun, or about to be, and not at work yet. */
  private ahead = 0;
  private turnedAt = performance.now();
  private readonly waiting: (() => void)[] = [];
  private readonly jobs: (() => void)[] = [];

  constructor(size: number) {
    this.size = size;
    this.free = size;
  }

  /** Resolves when a job of `count` members may be begun; each of them then comes to `work`, or is told to have `passed`. */
  async enter(count: number): Promise<void> {
    while (this.ahead >= this.size) await new Promise<void>((resolve) => this.jobs.push(resolve));
    this.ahead += count;
    this.letIn();
  }

  /** So many of those that entered do not come. */
  passed(count: number): void {
    this.ahead -= count;
    this.letIn();
  }

  /** Does `work` in a slot, which is free again when that is over or says so. */
  async work<T>(work: (leave: () => void) => Promise<T>): Promise<T> {
    if (this.free > 0) this.free--;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    if (performance.now() - this.turnedAt > TURN_MS) {
      await turn();
      this.turnedAt = performance.now();
    }
    let here = true;
    const leave = (): void => {
      if (!here) return;
      here = false;
      const next = this.waiting.shift();
      if (next) next();
      else this.free++;
    };
    try {
      return await work(leave);
    } finally {
      leave();
    }
  }

  private letIn(): void {
    if (this.ahead < this.size) this.jobs.shift()?.();
  }
}
