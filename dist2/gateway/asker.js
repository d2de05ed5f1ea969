// What the gateway needs of the verifier's side: one answer for one query, by a deadline or until nobody waits. The
// fleet's asker stands behind it (cache, single flight, batches, limits and breaker are its work); what is here only
// makes sure that local timers alone keep the deadline, whatever becomes of Redis.
import { messageOf } from '../shared/errors.js';
/** One asker per upstream and limits: configs that ask the same platform in the same way share it. */
export class Askers {
    all = new Map();
    open;
    constructor(open) {
        this.open = open;
    }
    of(verifier) {
        const { baseUrl, platformId, maxConcurrency, requestsPerSecond } = verifier;
        const key = JSON.stringify([baseUrl, String(platformId), maxConcurrency, requestsPerSecond]);
        let asker = this.all.get(key);
        if (!asker) {
            asker = this.open(verifier);
            this.all.set(key, asker);
        }
        return asker;
    }
    async close() {
        await Promise.all([...this.all.values()].map((asker) => asker.close()));
    }
}
/** The asker is trusted to answer by the deadline, and not relied upon: so long after it, it is not waited for. */
const GUARD_MS = 300;
/** The queries' answers by the deadline: what is missing then, or when nobody waits, is `unavailable`. */
export function answersInTime(asker, queries, options) {
    const { signal, deadlineMs } = options;
    return new Promise((resolve) => {
        const end = (answers) => {
            clearTimeout(timer);
            signal.removeEventListener('abort', gone);
            resolve(typeof answers === 'string' ? queries.map(() => ({ kind: 'unavailable', detail: answers })) : answers);
        };
        const gone = () => end('nobody waits for the answer any more');
        const timer = setTimeout(() => end('no answer by the deadline'), Math.max(0, deadlineMs) + GUARD_MS);
        if (signal.aborted)
            return gone();
        signal.addEventListener('abort', gone, { once: true });
        asker.ask(queries, options).then(end, (bug) => end(`asking failed: ${messageOf(bug)}`));
    });
}
