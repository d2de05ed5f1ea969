// The fleet's shared state as a process sees it: the scripts, their options and what they answer. Every answer may
// bring calls to make; a message may bring answers that other processes got.
import { loadScript } from '../../../shared/redis/script.js';
import { readReply } from './exchange-reply.js';
import { BATCH, FLEET_KEY } from './upstream.js';
const LONGEST_PAUSE_MS = 300_000;
/** Calls that one script hands out. */
const CALLS = 64;
const FOLDER = new URL('.', import.meta.url);
// What frees or ends something must run on a full Redis; so must a join, whose flights are bounded by those who wait.
const PRELUDE = ['state', 'limits', 'processes', 'cache', 'flights', 'calls'];
const script = (name) => loadScript(FOLDER, name, { allowOom: true, prelude: PRELUDE });
const JOIN = script('join');
const TAKE = script('take');
const SETTLE = script('settle');
const HEDGE = script('hedge');
const TELL = script('tell');
const LEAVE = script('leave');
const BEAT = script('beat');
export class Exchange {
    /** Redis is nearly full: keep nothing, shed what is kept. */
    full = false;
    /** Takes no calls any more. */
    closing = false;
    redis;
    standing;
    calls;
    process;
    clock;
    turn = 0;
    /** At the last answer. */
    waiting = 0;
    load = () => ({ under: 0, held: 0, most: 0 });
    constructor(redis, identity, l) {
        this.redis = redis;
        this.process = identity.process;
        const concurrency = Math.max(1, Math.floor(l.concurrency));
        this.calls = Math.min(concurrency, CALLS);
        this.clock = l.clock;
        this.standing = {
            up: identity.upstream,
            me: identity.process,
            platform: identity.platform,
            key: identity.key,
            concurrency,
            spacing: l.requestsPerSecond ? 1000 / l.requestsPerSecond : 0,
            window: l.windowMs ?? 3,
            batch: BATCH,
            bytes: 4 * 1024 * 1024,
            // Longer than a call can last, so that a slot is never given twice.
            permit: (l.callTimeoutMs ?? 60_000) + 10_000,
            lease: l.leaseMs ?? 10_000,
            grace: 3_000,
            lost: 3_000,
            tries: l.tries ?? 5,
            // Processes that may die with a query: together, in a part, then alone.
            deaths: 7,
            // No platform may have the fleet wait longer than this.
            longest: LONGEST_PAUSE_MS,
            patience: l.patienceMs ?? 120_000,
            threshold: l.breakerThreshold ?? 5,
            cooldown: l.breakerCooldownMs ?? 30_000,
            refusal: l.refusalMs ?? 30_000,
            // What was learned of batches is tried anew after this.
            memory: 600_000,
            room: l.cacheBytes ?? 64 * 1024 * 1024,
        };
    }
    join(options, wanted) {
        const { epoch, cache, ttlMs, budget, joined, now } = options;
        const args = wanted.flatMap((one) => [one.key, one.sealed ?? '']);
        const own = { epoch, cache, ttl: cache ? ttlMs : 0, budget: budget ?? -1, joined, now };
        return this.run(JOIN, own, [options.shown, ...args]);
    }
    take() {
        return this.run(TAKE, {}, []);
    }
    settle(ended) {
        const settled = ended.map(({ call, permit, last, heir, said, items }) => ({
            token: call.token,
            permit,
            last,
            ahead: call.ahead,
            ...(heir === null ? {} : { heir: heir.token, items: heir.items.length }),
            gen: call.generation,
            outcome: said.outcome,
            pause: said.pauseMs,
            halved: said.halved,
            restored: said.restored,
            single: said.single,
            n: items.length,
        }));
        const codings = ended.flatMap(({ items }) => items.flatMap((i) => [i.key, i.code, i.value, i.number]));
        return this.run(SETTLE, { settled }, [...ended.map(({ said }) => said.why), ...codings]);
    }
    /** Permits for asking a call's queries again in these parts: as many as there may be, as `names`. */
    hedge(hung, parts) {
        const own = { hung: hung.token, items: parts.map((part) => part.length) };
        return this.run(HEDGE, own, parts.flatMap((part) => part.map((item) => item.key)));
    }
    tell(queries) {
        return this.run(TELL, {}, queries.flatMap((one) => [one.key, one.sealed]));
    }
    leave(keys) {
        return this.run(LEAVE, {}, keys);
    }
    beat({ mine, dead, abandon }, keys) {
        return this.run(BEAT, { mine, dead, abandon }, keys);
    }
    async run(script, own, args) {
        this.turn++;
        const { under, held, most } = this.load();
        const options = {
            ...this.standing,
            ...(this.clock ? { clock: this.clock() } : {}),
            full: this.full,
            calls: this.closing ? 0 : this.calls,
            under,
            held,
            ahead: this.closing ? 0 : most,
            token: `${this.process}.${this.turn.toString(36)}`,
            now: false,
            ...own,
        };
        const reply = readReply(await script.callBuffer(this.redis, FLEET_KEY, [JSON.stringify(options), ...args]));
        this.waiting = reply.waiting;
        return reply;
    }
}
