// The gateway's side of the interactive lane: samples that it has there, what it is told of them, and what it does when
// it is told nothing: those that Redis forgot are submitted again, and those that no worker is left to take come back.
// Nobody's deadline waits for Redis: that is kept by whoever asks here.
import { randomBytes } from 'node:crypto';
import { messageOf } from '../shared/errors.js';
import { InteractiveLane } from '../shared/interactive/lane.js';
import { dumpAsked, readOutcome, } from '../shared/interactive/sample-outcome.js';
import { dumpJson } from '../shared/json/json.js';
import { detailOf } from '../shared/outcome.js';
import { present } from '../shared/presence.js';
import { processIdentity } from '../shared/process-identity.js';
import { openRedis } from '../shared/redis/connect.js';
import { within } from '../shared/within.js';
/** What the samples of one request share. */
export class LaneCall {
    id = randomBytes(9).toString('base64url');
    shared;
    sent = false;
    constructor(asked) {
        this.shared = dumpAsked(asked);
    }
}
const BEAT_MS = 1_000;
const LISTEN_MS = 5_000;
const LOOK_MS = 1_000;
/** In Redis at once, from this gateway. */
const MOST = { samples: 64, bytes: 32 * 1024 * 1024 };
export class InteractiveDesk {
    /** Whether somebody takes samples. */
    workers = false;
    options;
    lane;
    gate = `${processIdentity()}-${randomBytes(6).toString('hex')}`;
    entries = new Map();
    bytes = 0;
    beat = null;
    beating = false;
    listening = null;
    withdrawing = new Set();
    closed = false;
    constructor(options) {
        this.options = options;
        this.lane = new InteractiveLane(options.redis, options.realm);
    }
    get hasRoom() {
        return this.entries.size < MOST.samples && this.bytes < MOST.bytes;
    }
    /** Whether workers are there now; a Redis that does not say has none. */
    async look() {
        const { redis, realm } = this.options;
        const found = present(redis).then((all) => all.some((one) => one.realm === realm && (one.slots.interactive ?? 0) > 0), () => false);
        this.workers = await within(found, LOOK_MS, false);
    }
    /** Never rejects. `nobody`: it is scored elsewhere. `until` is on the monotonic clock. */
    async play(call, index, completion, until, signal) {
        const content = dumpJson(completion, { compact: true });
        const id = `${call.id}.${index}.${randomBytes(3).toString('hex')}`;
        const over = new Promise((resolve) => {
            this.entries.set(id, { id, call, content, until, state: 'waiting', missing: 0, resolve });
        });
        const entry = this.entries.get(id);
        this.bytes += content.length;
        const given = () => {
            this.withdraw(call, [id]);
            entry.resolve(lateOutcome(entry.state));
        };
        signal.addEventListener('abort', given, { once: true });
        if (signal.aborted)
            given();
        else {
            this.start();
            void this.submit(entry).catch((error) => {
                // Until the next look.
                this.workers = false;
                const detail = detailOf(`the farm’s Redis does not take samples: ${messageOf(error)}`);
                entry.resolve(this.options.elsewhere ? 'nobody' : { status: 'no_result', cause: 'sandbox_start', detail });
                this.withdraw(call, [id]);
            });
        }
        const outcome = await over;
        signal.removeEventListener('abort', given);
        this.entries.delete(id);
        this.bytes -= content.length;
        this.rest();
        return outcome;
    }
    /** Nobody asks for any of its samples any more. */
    end(call) {
        if (call.sent)
            this.withdraw(call, [], true);
    }
    async submit(entry) {
        const { call, id, content, until } = entry;
        const left = until - performance.now();
        const samples = [{ id, content }];
        const first = !call.sent;
        call.sent = true;
        if (await this.lane.submit(call.id, this.gate, left, first ? call.shared : null, samples))
            return;
        await this.lane.submit(call.id, this.gate, left, call.shared, samples);
    }
    withdraw(call, ids, all = false) {
        const going = this.lane.withdraw(call.id, ids, all).catch(() => { });
        this.withdrawing.add(going);
        void going.then(() => this.withdrawing.delete(going));
    }
    start() {
        this.beat ??= setInterval(() => void this.tend(), BEAT_MS);
        if (this.listening === null && !this.closed) {
            this.listening = openRedis(this.options.place);
            void this.listen(this.listening);
        }
    }
    rest() {
        if (this.entries.size > 0 || this.beat === null)
            return;
        clearInterval(this.beat);
        this.beat = null;
    }
    async listen(listening) {
        while (this.listening === listening) {
            try {
                for (const told of await this.lane.told(listening, this.gate, LISTEN_MS))
                    this.hear(told);
            }
            catch {
                // Reconnected by itself, or closed.
                if (this.listening === listening)
                    await new Promise((resolve) => setTimeout(resolve, 100));
            }
        }
    }
    hear(told) {
        const entry = this.entries.get(told.id);
        if (!entry)
            return;
        if (told.kind === 'over')
            entry.resolve(readOutcome(told.outcome));
        else
            entry.state = told.kind;
    }
    /** Once a second, while there is something to wait for. */
    async tend() {
        if (this.beating)
            return;
        this.beating = true;
        try {
            await this.look();
            const entries = [...this.entries.values()];
            const missing = new Set(await this.lane.tend(this.gate, entries.map((one) => one.id)));
            for (const entry of entries) {
                entry.missing = missing.has(entry.id) ? entry.missing + 1 : 0;
                // At the first time its outcome may be on its way to us.
                if (entry.missing > 1 && this.entries.has(entry.id)) {
                    entry.missing = 0;
                    entry.state = 'lost';
                    await this.submit(entry);
                }
                if (!this.workers && this.options.elsewhere && entry.state !== 'taken') {
                    this.withdraw(entry.call, [entry.id]);
                    entry.resolve('nobody');
                }
            }
        }
        catch {
            // Redis is away: deadlines are kept without it.
        }
        finally {
            this.beating = false;
        }
    }
    async close() {
        this.closed = true;
        for (const entry of this.entries.values()) {
            this.withdraw(entry.call, [entry.id]);
            entry.resolve(lateOutcome(entry.state));
        }
        await Promise.all([...this.withdrawing]);
        if (this.beat)
            clearInterval(this.beat);
        this.listening?.disconnect();
        this.listening = null;
    }
}
function lateOutcome(state) {
    const late = {
        waiting: { cause: 'not_started', detail: 'no sandbox was free before the deadline' },
        taken: { cause: 'environment_silent', detail: 'the episode was not over by the deadline' },
        lost: { cause: 'sandbox_lost', detail: 'its worker was lost, and no other was done before the deadline' },
    };
    return { status: 'no_result', ...late[state] };
}
