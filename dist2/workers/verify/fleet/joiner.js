// Makes what is wanted here known to the fleet: all that is asked in one turn of the event loop in one script call.
import { messageOf } from '../../../shared/errors.js';
import { writeQuery } from './flight-text.js';
import { BATCH } from './upstream.js';
/** Queries in one script call: with `appendfsync always` every call is a write to disk. */
const CHUNK = 500;
const RETRY_MS = 250;
/** Queries that this process did not take so soon are told, so that others can. */
const TELL_MS = 8;
export class Joiner {
    /** Answers shared with an equal query that was under way here, since the fleet was last told. */
    joined = 0;
    options;
    timers = new Set();
    fresh = [];
    flushing = false;
    constructor(options) {
        this.options = options;
    }
    /** At the end of this turn of the loop, together with what others want by then. */
    send(wait) {
        wait.state = 'new';
        wait.missing = false;
        this.fresh.push(wait);
        if (this.flushing)
            return;
        this.flushing = true;
        setImmediate(() => void this.flush());
    }
    close() {
        for (const timer of this.timers)
            clearTimeout(timer);
        this.timers.clear();
    }
    async flush() {
        this.flushing = false;
        const byGroup = new Map();
        for (const wait of this.fresh.splice(0)) {
            if (wait.told.size === 0 || !this.options.waits.has(wait))
                continue;
            const name = JSON.stringify(wait.group);
            const list = byGroup.get(name);
            if (list)
                list.push(wait);
            else
                byGroup.set(name, [wait]);
        }
        await this.options.ready();
        // Who fills batches by itself waits for no company.
        for (const list of byGroup.values())
            for (let i = 0; i < list.length; i += CHUNK)
                void this.join(list.slice(i, i + CHUNK), list.length >= BATCH);
    }
    async join(waits, now) {
        const { exchange, log, shown } = this.options;
        const sent = waits.filter((wait) => this.options.waits.has(wait));
        if (sent.length === 0)
            return;
        const { joined } = this;
        this.joined = 0;
        for (const wait of sent)
            wait.state = 'sent';
        try {
            // Most of a large ask is called from here at once, and nobody else needs its queries.
            const wanted = sent.map((wait) => ({ key: wait.key, sealed: now ? null : this.sealed(wait) }));
            const reply = await exchange.join({ ...sent[0].group, joined, now, shown }, wanted);
            this.options.onReply(reply);
            sent.forEach((wait, i) => {
                if (wait.state === 'sent')
                    wait.state = 'joined';
                this.options.onCoded(wait, reply.own[i]);
            });
            if (now)
                this.tellLater(sent.filter((_, i) => reply.own[i]?.code === 'f'));
        }
        catch (error) {
            log.debug({ error: messageOf(error) }, 'the fleet could not be asked');
            this.joined += joined;
            const again = setTimeout(() => {
                for (const wait of sent)
                    if (this.options.waits.has(wait))
                        this.send(wait);
            }, RETRY_MS);
            again.unref();
        }
    }
    tellLater(waits) {
        const timer = setTimeout(() => {
            this.timers.delete(timer);
            const left = waits.filter((wait) => !wait.taken && this.options.waits.has(wait));
            if (left.length === 0)
                return;
            this.options.exchange.tell(left.map((wait) => ({ key: wait.key, sealed: this.sealed(wait) }))).then((reply) => this.options.onReply(reply), (error) => this.options.log.debug({ error: messageOf(error) }, 'queries could not be told'));
        }, TELL_MS);
        this.timers.add(timer);
    }
    sealed({ key, query }) {
        return this.options.seal.close(writeQuery(query), key);
    }
}
