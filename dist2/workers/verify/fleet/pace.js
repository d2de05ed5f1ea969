// How long calls to an upstream usually take, learned from those that ended well: what hangs stands out against it.
const KEPT = 64;
export class Pace {
    recent = [];
    at = 0;
    known = null;
    /** A call that was answered. */
    note(ms) {
        this.recent[this.at++ % KEPT] = ms;
        this.known = null;
    }
    /** So long or less nine in ten took; null before any has answered. */
    usualMs() {
        if (this.recent.length === 0)
            return null;
        if (this.known === null) {
            const sorted = [...this.recent].sort((a, b) => a - b);
            this.known = sorted[Math.floor((sorted.length - 1) * 0.9)];
        }
        return this.known;
    }
}
const LEAST_MS = 250;
const TIMES = 4;
/**
 * When a call of several queries counts as hanging, ms from its begin: several times what is usual, at most `mostMs`,
 * and in time for whoever waits shortest (`leftMs`), yet never sooner than calls usually take.
 */
export function hangsAfterMs(usualMs, mostMs, leftMs) {
    const patient = usualMs === null ? mostMs : Math.min(mostMs, Math.max(LEAST_MS, usualMs * TIMES));
    return Math.max((usualMs ?? 0) * 1.5, Math.min(patient, leftMs / 3));
}
