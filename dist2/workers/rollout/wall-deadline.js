// An episode's deadline on the wall, over everything: the wait for its box, the start, every step, reading, storing and
// the box's end. It is the sum of the bounds that its parts have anyway, so that it is met only when something hangs.
import { within } from '../../shared/within.js';
/** For a box, and for what the plan's document and the trajectory need of the store. */
const AROUND_MS = 180_000;
/** On top of a step's own time: kill, reset, files in and out. */
const STEP_GRACE_MS = 30_000;
/** Well within the life of a box, which may be a quarter of an hour old when an episode gets it. */
const LONGEST_MS = 100 * 60_000;
/** For what is told to end, until it is left alone. */
export const END_MS = 20_000;
export class WallDeadline extends Error {
    constructor(ms) {
        super(`the episode was not over within ${Math.round(ms / 1000)} s`);
        this.name = 'WallDeadline';
    }
}
export function episodeMs({ maxSteps, sandbox }) {
    return Math.min(LONGEST_MS, AROUND_MS + maxSteps * (sandbox.timeoutS * 1000 + STEP_GRACE_MS));
}
/** Runs `work` with a signal that ends it at the deadline, or when `signal` does; what does not heed it is left behind. */
export async function withinWall(ms, signal, work, endMs = END_MS) {
    const wall = new AbortController();
    const both = AbortSignal.any([signal, wall.signal]);
    let deaf;
    const left = new Promise((_, reject) => {
        both.addEventListener('abort', () => {
            deaf = setTimeout(() => reject(both.reason), endMs);
        });
    });
    const timer = setTimeout(() => wall.abort(new WallDeadline(ms)), ms);
    try {
        return await Promise.race([work(both), left]);
    }
    finally {
        clearTimeout(timer);
        clearTimeout(deaf);
    }
}
/** Waits for an end, but not for ever. */
export async function ended(end, ms = END_MS) {
    await within(end, ms, null);
}
