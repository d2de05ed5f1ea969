// Asks a platform: what all callers of one client want is sent together, in batches of up to 50 and a bounded number
// of calls, an equal query that is under way once. Halves what is too big and falls back to single calls where there
// is no batch path; both are remembered. It retries what the infrastructure did, waits where the platform says wait
// (all calls together), and stops at once when the platform refuses key or platform. Every query gets an answer.
import { setTimeout as delay } from 'node:timers/promises';
import { PlatformCaller } from './platform-call.js';
import { bodyText, singleBody } from './wire-request.js';
const BATCH = 50;
/** Hard: from the first byte sent to the last one received. */
const CALL_TIMEOUT_MS = 60_000;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 8_000;
/** A platform that says `Retry-After: 0` and goes on refusing must not be asked in a tight loop. */
export const LEAST_PAUSE_MS = 100;
/** After a refusal of key or platform nobody asks for so long: it may have been mended since. */
const REFUSED_MS = 30_000;
export class VerifierClient {
    options;
    caller;
    waiting = [];
    flights = new Map();
    active = 0;
    batchSize = BATCH;
    singles = false;
    refused = null;
    pausedUntil = 0;
    nextAt = 0;
    constructor(options) {
        this.options = options;
        this.caller = new PlatformCaller(options);
    }
    /** One answer for each query, in order. */
    async ask(queries) {
        return Promise.all(queries.map((query) => this.one(query)));
    }
    close() {
        this.caller.close();
    }
    one(query) {
        const key = bodyText(singleBody(query, false));
        const under = this.flights.get(key);
        if (under)
            return under;
        // Sent at the end of this turn of the loop, together with what others want by then.
        if (this.waiting.length === 0)
            setImmediate(() => this.pump());
        const flight = new Promise((settle, fail) => {
            this.waiting.push({ query, tries: 0, waitedMs: 0, alone: false, settle, fail });
        }).finally(() => this.flights.delete(key));
        this.flights.set(key, flight);
        return flight;
    }
    pump() {
        while (this.waiting.length > 0 && this.active < Math.max(1, this.options.concurrency)) {
            const part = this.next();
            this.active++;
            this.serve(part)
                .catch((bug) => {
                for (const one of part)
                    one.fail(bug);
            })
                .finally(() => {
                this.active--;
                this.pump();
            });
        }
    }
    next() {
        const most = this.singles || this.waiting[0]?.alone ? 1 : this.batchSize;
        const end = this.waiting.findIndex((one, i) => i > 0 && (i >= most || one.alone));
        return this.waiting.splice(0, end === -1 ? this.waiting.length : end);
    }
    /** Asks once for `part`; what has to be asked again, smaller or later, goes to the front of the queue. */
    async serve(part) {
        const held = await this.hold();
        if (held !== null) {
            for (const one of part)
                one.settle(held);
            return;
        }
        const again = [];
        let pauseMs = 0;
        await this.space();
        const meanings = await this.call(part);
        const halve = part.length > 1 && meanings.every((meaning) => meaning.kind === 'too_big');
        if (halve)
            this.batchSize = Math.max(1, Math.min(this.batchSize, Math.floor(part.length / 2)));
        for (const [i, meaning] of meanings.entries()) {
            const one = part[i];
            switch (meaning.kind) {
                case 'verdict':
                case 'denial':
                    one.settle(meaning);
                    break;
                case 'misconfigured':
                    this.refused = { detail: meaning.detail, until: this.now() + REFUSED_MS };
                    one.settle(meaning);
                    break;
                case 'not_understood':
                    one.settle({ kind: 'unavailable', detail: `the request is not understood: ${meaning.detail}` });
                    break;
                case 'unsupported':
                    this.singles = true;
                    again.push(one);
                    break;
                case 'apart':
                    one.alone = true;
                    again.push(one);
                    break;
                case 'too_big':
                    if (halve)
                        again.push(one);
                    else
                        one.settle({ kind: 'unreadable', detail: meaning.detail });
                    break;
                case 'rate_limited': {
                    const waitMs = Math.max(LEAST_PAUSE_MS, meaning.retryAfterMs ?? this.backoff(one.tries));
                    one.waitedMs += waitMs;
                    this.pausedUntil = Math.max(this.pausedUntil, this.now() + waitMs);
                    this.options.onRateLimit?.(waitMs);
                    if (one.waitedMs > this.patienceMs)
                        one.settle({ kind: 'unavailable', detail: `rate limited: ${meaning.detail}` });
                    else
                        again.push(one);
                    break;
                }
                case 'infrastructure':
                    one.tries++;
                    if (one.tries >= (this.options.tries ?? 5))
                        one.settle({ kind: 'unavailable', detail: meaning.detail });
                    else {
                        pauseMs = Math.max(pauseMs, this.backoff(one.tries - 1));
                        again.push(one);
                    }
            }
        }
        await this.pause(pauseMs);
        this.waiting.unshift(...again);
    }
    /** Waits while the platform asks to; the answer for everybody where waiting or asking makes no sense. */
    async hold() {
        const waitMs = this.pausedUntil - this.now();
        if (waitMs > this.patienceMs)
            return { kind: 'unavailable', detail: 'rate limited for longer than a query may wait' };
        if (!this.stopped)
            await this.pause(waitMs);
        if (this.refused !== null && this.now() < this.refused.until)
            return { kind: 'misconfigured', detail: this.refused.detail };
        return this.stopped ? { kind: 'unavailable', detail: 'stopped' } : null;
    }
    /** Each call has its time, where there is a rate. */
    async space() {
        const rate = this.options.requestsPerSecond ?? 0;
        if (rate <= 0)
            return;
        const at = Math.max(this.now(), this.nextAt);
        this.nextAt = at + 1_000 / rate;
        await this.pause(at - this.now());
    }
    get patienceMs() {
        return this.options.patienceMs ?? 120_000;
    }
    async call(part) {
        const { meanings } = await this.caller.call(part.map((one) => one.query), this.singles, { timeoutMs: this.options.callTimeoutMs ?? CALL_TIMEOUT_MS, now: this.now(), signal: this.options.signal });
        return meanings;
    }
    get stopped() {
        return this.options.signal?.aborted === true;
    }
    now() {
        return this.options.now?.() ?? performance.timeOrigin + performance.now();
    }
    backoff(tries) {
        const base = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** tries);
        return base + (this.options.random ?? Math.random)() * base * 0.25;
    }
    async pause(ms) {
        if (ms <= 0)
            return;
        if (this.options.sleep)
            await this.options.sleep(ms);
        else
            await delay(ms, undefined, this.options.signal ? { signal: this.options.signal } : {}).catch(() => undefined);
    }
}
