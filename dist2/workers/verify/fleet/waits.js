// The queries that this process waits for, by flight, and who is to be told. A query that is given up stays known
// until Redis has heard of it: a call with it may be on its way here.
export class Waits {
    all = new Map();
    get size() {
        return this.all.size;
    }
    get(key) {
        return this.all.get(key);
    }
    has(wait) {
        return this.all.get(wait.key) === wait;
    }
    add(key, query, group) {
        const since = performance.now();
        const dueAt = Number.POSITIVE_INFINITY;
        const wait = { key, query, group, told: new Set(), state: 'new', missing: false, taken: false, since, dueAt };
        this.all.set(key, wait);
        return wait;
    }
    taken(key) {
        const wait = this.all.get(key);
        if (wait)
            wait.taken = true;
    }
    leftMs(key) {
        return (this.all.get(key)?.dueAt ?? Number.POSITIVE_INFINITY) - performance.now();
    }
    answer(key, answer) {
        const wait = this.all.get(key);
        this.all.delete(key);
        for (const tell of wait?.told ?? [])
            tell(answer);
    }
    /** Everybody who waits. */
    open() {
        return [...this.all.values()].flatMap((wait) => [...wait.told].map((tell) => [wait, tell]));
    }
    /** Answers those of `open` who still wait; gives the flights that nobody here waits for any more and that Redis knows. */
    giveUp(open, answer) {
        const left = [];
        for (const [wait, tell] of open) {
            if (!wait.told.delete(tell))
                continue;
            tell(answer);
            if (wait.told.size > 0 || !this.has(wait))
                continue;
            if (wait.state === 'new')
                this.all.delete(wait.key);
            else
                left.push(wait.key);
        }
        return left;
    }
    /** Redis knows that we left: forgets them, but for those that somebody came to want meanwhile. */
    left(keys) {
        const wanted = [];
        for (const key of keys) {
            const wait = this.all.get(key);
            if (wait && wait.told.size > 0)
                wanted.push(wait);
            else
                this.all.delete(key);
        }
        return wanted;
    }
    olderThan(ms) {
        const before = performance.now() - ms;
        return [...this.all.values()]
            .filter((wait) => wait.state === 'joined' && wait.told.size > 0 && wait.since <= before)
            .map((wait) => wait.key);
    }
}
