// Tells Redis of calls that are over, several in one script call: what ends while one is on its way travels together
// with the next. Those who wait here have their answers by then; what is written is for others, and for the cache.
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../shared/errors.js';
const TRIES = 20;
const RETRY_MS = 500;
/** Calls, and queries, told at once. */
const MOST_CALLS = 64;
const MOST_ITEMS = 250;
/** Nobody waits for the permit: others that end now come along. */
const GATHER_MS = 3;
export class Settler {
    options;
    stop = new AbortController();
    line = [];
    running = false;
    constructor(options) {
        this.options = options;
    }
    /** Resolves when Redis knows, or never will. `hurry`: somebody may be waiting for what it brings. */
    add(ended, write, hurry) {
        return new Promise((done) => {
            this.line.push({ ended, write, items: null, done });
            if (this.running)
                return;
            this.running = true;
            if (hurry)
                setImmediate(() => void this.run());
            else
                setTimeout(() => void this.run(), GATHER_MS);
        });
    }
    /** Tries nothing again. */
    close() {
        this.stop.abort();
    }
    async run() {
        while (this.line.length > 0)
            await this.tell(this.next());
        this.running = false;
    }
    next() {
        let items = 0;
        const end = this.line.findIndex((entry, i) => {
            items += entry.ended.call.items.length;
            return i > 0 && (i >= MOST_CALLS || items > MOST_ITEMS);
        });
        return this.line.splice(0, end === -1 ? this.line.length : end);
    }
    async tell(entries) {
        const { exchange, log, onReply } = this.options;
        for (let turn = 1; turn <= TRIES; turn++) {
            try {
                for (const entry of entries)
                    entry.items ??= entry.write();
                onReply(await exchange.settle(entries.map(({ ended, items }) => ({ ...ended, items: items ?? [] }))));
                break;
            }
            catch (error) {
                if (this.stop.signal.aborted)
                    break;
                // A Redis that is away comes back; one that refuses what it is told, or never came, must be seen.
                const refused = error instanceof Error && error.name === 'ReplyError';
                if (refused && entries.length > 1) {
                    // One that cannot be told holds up no other.
                    for (const entry of entries)
                        await this.tell([entry]);
                    return;
                }
                if ((refused && turn === 1) || turn === TRIES) {
                    const line = turn < TRIES ? 'a call could not be settled: tried again' : 'a call could not be settled';
                    const { call } = entries[0].ended;
                    log.warn({ call: call.token, queries: call.items.length, detail: messageOf(error) }, line);
                }
                await delay(RETRY_MS, undefined, { signal: this.stop.signal }).catch(() => undefined);
            }
        }
        for (const { done } of entries)
            done();
    }
}
