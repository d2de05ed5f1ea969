// One taken call on its way: itself, and the smaller calls that ask its queries again where it hangs. The first answer
// to a query counts; a failure counts only when no other call with that query is out.
export class Outing {
    call;
    since = performance.now();
    open = new Map();
    outs = new Set();
    constructor(call) {
        this.call = call;
        for (const item of call.items)
            this.open.set(item.key, { out: 0, alone: 0 });
    }
    /** Nothing is out. */
    get over() {
        return this.outs.size === 0;
    }
    begin(permit, items) {
        const out = { permit, items, abort: new AbortController(), hedged: new Set(), abandoned: false };
        this.outs.add(out);
        this.move(out, 1);
        return out;
    }
    /** Of `items` those that have no answer yet. */
    unanswered(items) {
        return items.filter((item) => this.open.has(item.key));
    }
    /** `out` is over: the fates that count, of its queries that have none yet. */
    end(out, fates) {
        this.outs.delete(out);
        this.move(out, -1);
        const decided = out.items.flatMap((item, i) => {
            const open = this.open.get(item.key);
            const fate = fates[i];
            return open && (fate.kind === 'answered' || open.out === 0) ? [[item, fate]] : [];
        });
        for (const [item] of decided)
            this.open.delete(item.key);
        for (const other of this.outs)
            if (this.needless(other))
                other.abort.abort();
        return decided;
    }
    /** After smaller calls have begun. */
    prune() {
        for (const out of this.outs)
            if (this.needless(out))
                out.abort.abort();
    }
    /** Breaks off what went out with this permit, if that is one of its own. */
    abandon(permit) {
        for (const out of this.outs) {
            if (out.permit !== permit)
                continue;
            out.abandoned = true;
            out.abort.abort();
        }
    }
    /** Whatever it is still to bring is answered, or asked by itself. */
    needless(out) {
        return out.items.every(({ key }) => {
            const open = this.open.get(key);
            return !open || (out.items.length > 1 && open.alone > 0);
        });
    }
    abort() {
        for (const out of this.outs)
            out.abort.abort();
    }
    move(out, by) {
        for (const { key } of out.items) {
            const open = this.open.get(key);
            if (!open)
                continue;
            open.out += by;
            if (out.items.length === 1)
                open.alone += by;
        }
    }
}
