// How many boxes to have ready: as many as are taken in the time that a start takes, and half as many again. The rate of
// taking is one of the recent past, so that a burst fades and nothing is made where nothing is asked for.
/** The longer one bridges pauses, the shorter one sees a rush when it begins. */
const MEMORY_MS = { long: 10_000, short: 1_000 };
const MARGIN = 1.5;
/** Less than this expected during a start: whoever comes can wait for one. */
const WORTH = 0.05;
const FIRST_START_MS = 300;
export class Demand {
    most;
    rates = { long: 0, short: 0 };
    at = 0;
    startMs = FIRST_START_MS;
    constructor(most) {
        this.most = most;
    }
    took(now) {
        this.rates.long = this.faded('long', now) + 1000 / MEMORY_MS.long;
        this.rates.short = this.faded('short', now) + 1000 / MEMORY_MS.short;
        this.at = now;
    }
    started(tookMs) {
        this.startMs += (tookMs - this.startMs) / 4;
    }
    target(now) {
        // one alone is no rush
        const rate = Math.max(this.faded('long', now), this.faded('short', now) - 1000 / MEMORY_MS.short);
        const expected = ((rate * this.startMs) / 1000) * MARGIN;
        return expected < WORTH ? 0 : Math.min(this.most, Math.ceil(expected));
    }
    /** Takings a second. */
    faded(which, now) {
        return this.rates[which] * Math.exp(-Math.max(0, now - this.at) / MEMORY_MS[which]);
    }
}
