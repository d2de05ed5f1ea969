// How many boxes to have ready: as many as are taken in the time that a start takes, and half as many again. The rate of
// taking is one of the recent past, so that a burst fades and nothing is made where nothing is asked for.

/** The longer memory bridges pauses, the shorter one sees a rush when it begins. */
const LONG_TO_SHORT = 10;
const MARGIN = 1.5;
/** Less than this expected during a start: whoever comes can wait for one. */
const WORTH = 0.05;
const FIRST_START_MS = 300;

export class Demand {
  private readonly most: number;
  private readonly memoryMs: { long: number; short: number };
  private readonly rates = { long: 0, short: 0 };
  private at = 0;
  private startMs = FIRST_START_MS;

  constructor(most: number, memoryMs: number) {
    this.most = most;
    this.memoryMs = { long: memoryMs, short: memoryMs / LONG_TO_SHORT };
  }

  took(now: number): void {
    this.rates.long = this.faded('long', now) + 1000 / this.memoryMs.long;
    this.rates.short = this.faded('short', now) + 1000 / this.memoryMs.short;
    this.at = now;
  }

  started(tookMs: number): void {
    this.startMs += (tookMs - this.startMs) / 4;
  }

  target(now: number): number {
    // one alone is no rush
    const rate = Math.max(this.faded('long', now), this.faded('short', now) - 1000 / this.memoryMs.short);
    const expected = ((rate * this.startMs) / 1000) * MARGIN;
    return expected < WORTH ? 0 : Math.min(this.most, Math.ceil(expected));
  }

  /** Takings a second. */
  private faded(which: 'long' | 'short', now: number): number {
    return this.rates[which] * Math.exp(-Math.max(0, now - this.at) / this.memoryMs[which]);
  }
}
