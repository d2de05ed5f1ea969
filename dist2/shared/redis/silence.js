// Says in a process's log that Redis does not answer, since when, and that it does again: commands of a patient connection
// wait without a word, and a Redis that stands still closes no connection.
import { setTimeout as wait } from 'node:timers/promises';
const EVERY_MS = 1_000;
const SILENT_MS = 2_000;
const AGAIN_MS = 10_000;
export function tellSilence(redis, address, log) {
    const over = new AbortController();
    void watch(redis, address, log, over.signal);
    return { stop: () => over.abort() };
}
async function watch(redis, address, log, over) {
    const rest = (ms) => wait(ms, undefined, { signal: over, ref: false }).catch(() => { });
    const seconds = (since) => Number(((performance.now() - since) / 1000).toFixed(1));
    let heardAt = performance.now();
    let toldAt = Number.NEGATIVE_INFINITY;
    while (!over.aborted) {
        // One question at a time: it is answered when Redis is back, however long that takes, or fails.
        const asked = redis.ping().then(() => 'pong', () => 'failed');
        let answer = null;
        while (answer === null && !over.aborted) {
            answer = await Promise.race([asked, rest(EVERY_MS).then(() => null)]);
            const now = performance.now();
            if (answer === 'pong' || over.aborted || now - heardAt < SILENT_MS || now - toldAt < AGAIN_MS)
                continue;
            toldAt = now;
            log.warn({ redis: address, since_s: seconds(heardAt) }, 'waiting for Redis: nothing is begun until it answers; members at work go on');
        }
        if (answer === 'pong') {
            if (toldAt > 0)
                log.info({ redis: address, silent_s: Math.round(seconds(heardAt)) }, 'Redis answers again');
            heardAt = performance.now();
            toldAt = Number.NEGATIVE_INFINITY;
        }
        await rest(EVERY_MS);
    }
}
