// Makes the calls that this process has taken, for whomever: reads the queries, calls, answers those who wait here at
// once, and has the call settled with Redis, which answers the others and brings the next calls. A call of several
// queries that hangs is asked again in parts, and a part that hangs query by query; the first answer counts.
import { messageOf } from '../../../shared/errors.js';
import { detailOf } from '../../../shared/outcome.js';
import { within } from '../../../shared/within.js';
import { PlatformCaller } from '../platform-call.js';
import { AheadLine } from './ahead.js';
import { codingOf } from './coding.js';
import { readQuery } from './flight-text.js';
import { Outing } from './outing.js';
import { hangsAfterMs, Pace } from './pace.js';
import { givenBack, PART, settlementOf } from './settlement.js';
import { Settler } from './settler.js';
const AHEAD = 64;
/** A call that has not answered after so long hangs, whatever is usual. */
const HEDGE_MS = 5_000;
/** Where there were not enough permits for all the parts of a call that hangs, it is looked at again. */
const HEDGE_AGAIN_MS = 50;
export class CallDesk {
    options;
    caller;
    settler;
    ahead;
    pace = new Pace();
    outings = new Set();
    under = new Map();
    /** Calls that were taken, and not made. */
    returning = new Map();
    closing = false;
    /** When a call last ended well; calls that are being asked again in parts. */
    wellAt = Number.NEGATIVE_INFINITY;
    hanging = new Set();
    constructor(options) {
        this.options = options;
        const { exchange, log, onReply } = options;
        this.caller = new PlatformCaller(options.platform);
        this.settler = new Settler({ exchange, log, onReply });
        this.ahead = new AheadLine((calls) => this.giveBack(calls));
        exchange.load = () => ({
            under: this.under.size,
            held: this.ahead.size,
            most: !this.closing && this.ahead.worthwhile(this.pace.usualMs()) ? AHEAD : 0,
        });
    }
    get tokens() {
        return [...this.under.keys(), ...this.returning.keys(), ...this.ahead.tokens];
    }
    get count() {
        return this.under.size + this.returning.size + this.ahead.size;
    }
    /** So long a call may be out when nobody waits for it any more: its answer would still be kept. */
    get abandonMs() {
        return Math.round(Math.max(this.options.limits.hedgeMs ?? HEDGE_MS, (this.pace.usualMs() ?? 0) * 2));
    }
    abandon(permit) {
        for (const outing of this.outings)
            outing.abandon(permit);
    }
    make(call) {
        if (!call.ahead)
            this.start(call);
        else if (this.closing || this.under.size === 0)
            this.giveBack([call]);
        else
            this.ahead.hold(call);
    }
    /** Others need what is held here, or it must not go out now. */
    giveBackAhead() {
        this.ahead.clear();
    }
    async close(graceMs) {
        this.closing = true;
        this.ahead.clear();
        const grace = new AbortController();
        // What Redis handed out just before it heard of the end has its time too.
        const drained = async () => {
            while (!grace.signal.aborted && this.count > 0)
                await Promise.all([...this.under.values(), ...this.returning.values()]);
        };
        await within(drained(), graceMs, null);
        grace.abort();
        for (const outing of this.outings)
            outing.abort();
        this.settler.close();
        // A Redis that is away must not hold up the end of a process: what it does not hear of, its leases tell.
        await within(Promise.all(this.under.values()), 2_000, null);
        this.caller.close();
    }
    start(call) {
        const outing = new Outing(call);
        this.outings.add(outing);
        this.send(outing, call.token, call.items);
    }
    send(outing, permit, items) {
        const done = this.serve(outing, outing.begin(permit, items)).finally(() => {
            this.under.delete(permit);
            this.options.onDone();
        });
        this.under.set(permit, done);
    }
    async serve(outing, out) {
        const { call } = outing;
        const watch = this.watch(outing, out);
        const settlement = this.seen(outing, out, await this.ask(out, call.single));
        watch.stop();
        const well = settlement.outcome === 'ok' && settlement.pauseMs === 0;
        // The slot that is free now does not wait until Redis knows.
        const heir = well && !this.closing ? this.ahead.next() : null;
        if (heir !== null)
            this.start(heir);
        const decided = outing.end(out, settlement.fates);
        for (const [item, fate] of decided)
            if (fate.kind === 'answered')
                this.options.onAnswer(item.key, fate.answer);
        if (outing.over) {
            this.outings.delete(outing);
            this.hanging.delete(outing);
        }
        const write = () => decided.map(([item, fate]) => codingOf(item, fate, this.options.seal));
        const idle = this.options.exchange.waiting === 0 && this.under.size > 1;
        const hurry = heir === null && !idle;
        const told = this.settler.add({ call, permit: out.permit, last: outing.over, heir, said: settlement }, write, hurry);
        if (!well && settlement.outcome !== 'given_back')
            this.ahead.clear();
        await told;
    }
    /** A call that hung for nobody is a failure of the platform where that answered nothing else meanwhile. */
    seen(outing, out, settlement) {
        if (!out.abandoned || settlement.outcome !== 'given_back' || this.wellAt > outing.since)
            return settlement;
        return { ...settlement, outcome: 'infra', why: 'no answer while anybody waited' };
    }
    /** Its queries were answered while the permit was on its way. */
    unused({ call, over }, permit) {
        void this.settler.add({ call, permit, last: over, heir: null, said: givenBack([]) }, () => [], true);
    }
    giveBack(calls) {
        for (const call of calls) {
            const said = givenBack(call.items);
            const write = () => call.items.map((item, i) => codingOf(item, said.fates[i], this.options.seal));
            const told = this.settler
                .add({ call, permit: call.token, last: true, heir: null, said }, write, true)
                .finally(() => {
                this.returning.delete(call.token);
                this.options.onDone();
            });
            this.returning.set(call.token, told);
        }
    }
    /** Never throws: a fault of ours is no answer of the platform. */
    async ask(out, single) {
        const { limits, random, now } = this.options;
        const { items } = out;
        try {
            const began = performance.now();
            const result = await this.caller.call(items.map((item) => this.queryOf(item)), single, { timeoutMs: limits.callTimeoutMs ?? 60_000, now: now(), signal: out.abort.signal });
            if (out.abort.signal.aborted && result.whole === 'infrastructure')
                return givenBack(items);
            const settlement = settlementOf(result, items, {
                tries: limits.tries ?? 5,
                patienceMs: limits.patienceMs ?? 120_000,
                backoffMs: limits.backoffMs ?? 500,
                random,
            });
            if (settlement.outcome === 'ok') {
                this.wellAt = performance.now();
                this.pace.note(this.wellAt - began);
            }
            return settlement;
        }
        catch (error) {
            const detail = detailOf(`this process could not ask: ${messageOf(error)}`);
            const answer = { kind: 'unavailable', detail };
            return { ...givenBack(items), fates: items.map(() => ({ kind: 'answered', answer })) };
        }
    }
    queryOf(item) {
        const here = this.options.queryOf(item.key);
        if (here)
            return here;
        const text = this.options.seal.open(item.sealed, item.key);
        if (text === null)
            throw new Error('a query that cannot be read');
        return readQuery(text);
    }
    /** Looks after a call of several queries: when it hangs, they are asked again in parts. */
    watch(outing, out) {
        if (out.items.length === 1)
            return { stop: () => { } };
        const leftMs = Math.min(...out.items.map((item) => this.options.leftMs(item.key)));
        const usual = this.pace.usualMs();
        const waitMs = hangsAfterMs(usual, this.options.limits.hedgeMs ?? HEDGE_MS, leftMs);
        let stopped = false;
        let timer;
        const look = async () => {
            const all = await this.hedge(outing, out).catch(() => false);
            if (!stopped && !all)
                timer = setTimeout(() => void look(), HEDGE_AGAIN_MS);
        };
        timer = setTimeout(() => void look(), waitMs);
        return {
            stop: () => {
                stopped = true;
                clearTimeout(timer);
            },
        };
    }
    /** True when there is nothing left of it to be asked again. */
    async hedge(outing, out) {
        if (this.closing)
            return true;
        // All is slow: one call is tried at a time, until something is answered.
        if (!this.hanging.has(outing) && this.hanging.size > 0 && this.wellAt < outing.since)
            return false;
        const left = outing.unanswered(out.items).filter((item) => !out.hedged.has(item.key));
        if (left.length === 0)
            return true;
        const size = out.permit === outing.call.token && out.items.length > PART ? PART : 1;
        const parts = [];
        for (let i = 0; i < left.length; i += size)
            parts.push(left.slice(i, i + size));
        this.hanging.add(outing);
        const reply = await this.options.exchange.hedge(outing.call, parts);
        for (const [i, permit] of reply.names.entries()) {
            const part = outing.unanswered(parts[i]);
            for (const item of part)
                out.hedged.add(item.key);
            if (part.length > 0)
                this.send(outing, permit, part);
            else
                this.unused(outing, permit);
        }
        this.options.onReply(reply);
        outing.prune();
        return reply.names.length === parts.length;
    }
}
