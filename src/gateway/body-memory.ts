// The memory that bodies share, counted as their bytes arrive: what a sender announces reserves nothing. When it is
// tight, readers pause, and of the bodies that are still arriving the largest and slowest are cut off; what came quickly
// is never cut. A sender below the pace is cut off even where there is room.
//
//   arriving ──last byte──> arrived ──> in use ──> released
//      ├─ no room: paused until there is; the oldest goes on where nobody is in use, or all would wait for each other
//      └─ slow, or the worst while others pause: cut (408)

import type { Admission } from './admission.ts';
import { HttpProblem } from './problem.ts';

export interface Pace {
  /** A sender's first time, which is not judged. */
  graceMs: number;
  overMs: number;
  bytesPerS: number;
}

export const PACE: Pace = { graceMs: 5_000, overMs: 10_000, bytesPerS: 1_024 };
const TICK_MS = 250;
/** A body that arrived within this is never cut for the sake of others. */
const QUICK_TICKS = 4;

export class Holding {
  bytes = 0;
  inUse = false;
  paused = false;
  /** How often the clock found its sender owing bytes: time that is lost to our own pauses does not count. */
  ticks = 0;
  readonly history: number[] = [];
  readonly cut: (problem: HttpProblem) => void;

  constructor(cut: (problem: HttpProblem) => void) {
    this.cut = cut;
  }
}

interface Waiting {
  holding: Holding;
  bytes: number;
  go(): void;
}

export class BodyMemory {
  private readonly account: Admission;
  private readonly pace: Pace;
  /** The oldest first. */
  private readonly arriving = new Set<Holding>();
  private readonly line = new Set<Waiting>();
  private inUse = 0;
  private clock: NodeJS.Timeout | null = null;

  constructor(account: Admission, pace: Pace = PACE) {
    this.account = account;
    this.pace = pace;
  }

  arrive(cut: (problem: HttpProblem) => void): Holding {
    const holding = new Holding(cut);
    this.arriving.add(holding);
    this.clock ??= setInterval(() => this.tick(), TICK_MS).unref();
    return holding;
  }

  /** Whether so many bytes more may be taken now; asked without a number, whether one may read on. */
  may(holding: Holding, bytes = 1): boolean {
    if (this.account.inside === 0 || this.account.inside + bytes <= this.account.capacity) return true;
    if (this.inUse > 0) return false;
    const [oldest] = this.arriving;
    return holding === oldest || !this.arriving.has(holding);
  }

  /** Calls `go` when it may, at once or later; what it returns gives the wait up. */
  when(holding: Holding, bytes: number, go: () => void): () => void {
    const waiting = { holding, bytes, go };
    holding.paused = true;
    this.line.add(waiting);
    return () => this.line.delete(waiting);
  }

  add(holding: Holding, bytes: number): void {
    holding.bytes += bytes;
    this.account.add(bytes);
  }

  /** All of it is there, and it will be released without anybody's doing. */
  use(holding: Holding): void {
    this.arriving.delete(holding);
    if (!holding.inUse) this.inUse++;
    holding.inUse = true;
    // Who comes next in age may have been waiting for its turn.
    this.settle();
  }

  /** All its bytes came; what it needs beyond them it has not. */
  arrived(holding: Holding): void {
    this.arriving.delete(holding);
    this.settle();
  }

  give(holding: Holding, bytes: number): void {
    holding.bytes -= bytes;
    this.account.give(bytes);
    this.settle();
  }

  release(holding: Holding): void {
    this.arriving.delete(holding);
    if (holding.inUse) this.inUse--;
    holding.inUse = false;
    if (this.arriving.size === 0 && this.clock) {
      clearInterval(this.clock);
      this.clock = null;
    }
    this.give(holding, holding.bytes);
  }

  /** Cuts the worst of the slow until a quarter is free, or what arrives is not what fills it. */
  relieve(): void {
    const { account } = this;
    let arriving = [...this.arriving].reduce((sum, one) => sum + one.bytes, 0);
    // One that has less than its share makes no room: it is not cut because the large ones are too young yet.
    const share = arriving / this.arriving.size;
    const slow = [...this.arriving].filter((one) => one.ticks >= QUICK_TICKS && one.bytes >= share);
    slow.sort((a, b) => b.bytes * b.ticks - a.bytes * a.ticks);
    for (const one of slow) {
      if (account.inside < 0.75 * account.capacity || arriving <= 0.25 * account.capacity) return;
      arriving -= one.bytes;
      this.cut(one, 'memory is short, and this body was the largest and slowest to arrive');
    }
  }

  private settle(): void {
    if (this.account.inside >= this.account.capacity && this.inUse > 0) return;
    for (const waiting of [...this.line]) {
      if (!this.line.has(waiting) || !this.may(waiting.holding, waiting.bytes)) continue;
      this.line.delete(waiting);
      waiting.holding.paused = false;
      waiting.go();
    }
  }

  private tick(): void {
    const { graceMs, overMs, bytesPerS } = this.pace;
    const span = Math.max(1, Math.round(overMs / TICK_MS));
    for (const one of [...this.arriving]) {
      if (one.paused) continue;
      one.ticks++;
      if (one.ticks * TICK_MS < graceMs) continue;
      one.history.push(one.bytes);
      if (one.history.length <= span) continue;
      const before = one.history.shift() as number;
      if (one.bytes - before < (bytesPerS * overMs) / 1_000) this.cut(one, 'the body did not arrive in time');
    }
    if (this.line.size > 0) {
      this.relieve();
      this.settle();
    }
  }

  /** Its memory is free at once: its reader drops what it has. */
  private cut(holding: Holding, why: string): void {
    const bytes = holding.bytes;
    this.arriving.delete(holding);
    holding.cut(slowBody(why));
    this.give(holding, bytes);
  }
}

export function slowBody(why = 'the body did not arrive in time'): HttpProblem {
  return new HttpProblem(408, 'body_slow', why, 'send it faster, or in smaller requests');
}
