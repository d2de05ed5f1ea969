// Completions to results by the deadline, whatever becomes of single ones. Large requests are worked off in slices with
// a turn of the event loop in between, so that a hundred thousand items delay nobody else's deadline; what a slice
// brought is handed over at once and not kept here. Equal queries of different slices are asked once.
import { cacheKey } from '../workers/verify/cache-key.js';
import { verifyCompletions } from '../workers/verify/verify.js';
import { answersInTime } from './asker.js';
import { linked } from './linked.js';
export const SLICE = 256;
/** `done` gets the results of each slice, with the index of its first item; slices come in any order. */
export async function scoreItems(askers, config, items, patience, done) {
    const { verifier, epoch } = config;
    const asker = askers.of(verifier);
    const turns = new Turns(items.length > SLICE);
    // What is asked for is given up when the request is answered.
    const asking = linked([patience.signal]);
    const { signal } = asking;
    const askNow = (queries) => {
        const deadlineMs = patience.until - performance.now();
        return answersInTime(asker, queries, { epoch, cache: verifier.cache, deadlineMs, signal });
    };
    const ask = items.length > SLICE ? askedOnce(verifier, askNow) : askNow;
    const slices = [];
    try {
        for (let start = 0; start < items.length; start += SLICE) {
            await turns.next();
            const slice = verifyCompletions(verifier, items.slice(start, start + SLICE), {
                ask: async (queries) => {
                    const answers = await ask(queries);
                    await turns.next();
                    return answers;
                },
            }).then((results) => done(start, results));
            slice.catch(() => { });
            slices.push(slice);
        }
        await Promise.all(slices);
    }
    finally {
        asking.release();
        asking.abort();
    }
}
function askedOnce({ platformId }, ask) {
    const known = new Map();
    return async (queries) => {
        const keys = queries.map((query) => cacheKey(platformId, query));
        const fresh = [];
        for (const [i, key] of keys.entries())
            if (!known.has(key))
                fresh.push(i);
        if (fresh.length > 0) {
            const answers = ask(fresh.map((i) => queries[i]));
            for (const [at, i] of fresh.entries())
                known.set(keys[i], answers.then((all) => all[at]));
        }
        return await Promise.all(keys.map((key) => known.get(key)));
    };
}
/** One turn of the event loop for each who asks, one after another. */
export class Turns {
    last = Promise.resolve();
    needed;
    constructor(needed) {
        this.needed = needed;
    }
    next() {
        if (!this.needed)
            return Promise.resolve();
        this.last = this.last.then(() => new Promise((resolve) => setImmediate(resolve)));
        return this.last;
    }
}
