// `farm top`: what is at work now, every second, until it is stopped: each run, and its slowest members with their phase
// and their deadline. A Redis that goes away is what it waits for then, and it says so.
import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.js';
import { EXIT, messageOf } from '../../shared/errors.js';
import { knownRuns } from '../../shared/ledger/known-runs.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { readRun } from '../run-view.js';
import { people } from './status.js';
const EVERY_MS = 1_000;
/** Less than the other commands': a live view shows soon that it is none. */
const ANSWER_MS = 2_000;
export async function top() {
    const { redis, place } = await connectRedis(readConfig());
    const gone = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => gone.abort());
    const screen = process.stdout.isTTY === true;
    let silentSince = null;
    try {
        while (!gone.signal.aborted) {
            const asked = performance.now();
            let text;
            try {
                text = await Promise.race([view(redis), silence(gone.signal)]);
                silentSince = null;
            }
            catch (error) {
                silentSince ??= asked;
                const seconds = ((performance.now() - silentSince) / 1000).toFixed(1);
                text = `waiting for Redis at ${place.address}, since ${seconds} s (${messageOf(error)}); asks again until it is stopped\n`;
            }
            process.stdout.write(screen ? `\x1b[H\x1b[2J${text}` : `${text}\n`);
            await wait(EVERY_MS, undefined, { signal: gone.signal }).catch(() => { });
        }
        return EXIT.ok;
    }
    finally {
        redis.disconnect();
    }
}
async function silence(signal) {
    await wait(ANSWER_MS, undefined, { signal }).catch(() => { });
    throw new Error(`no answer for ${ANSWER_MS / 1000} s`);
}
async function view(redis) {
    const all = await Promise.all((await knownRuns(redis, null)).map((run) => readRun(redis, run)));
    const live = all.filter((s) => s !== null && s.state !== 'done' && s.state !== 'cancelled').filter((s) => s !== null);
    return live.length > 0 ? live.map(people).join('\n') : 'nothing is at work\n';
}
