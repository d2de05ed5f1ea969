// Repeated requests: one that is the same as one in flight joins it, one that was answered before gets the kept answer.
// Kept within bounds (time, number, bytes). Work goes on for a while after its last caller has gone, because callers
// that repeat come back in a second or two; then it is cancelled.
export class Joins {
    entries = new Map();
    options;
    bytesOf;
    bytes = 0;
    constructor(options, bytesOf) {
        this.options = options;
        this.bytesOf = bytesOf;
    }
    get size() {
        return this.entries.size;
    }
    /** Null where `key` was used for another `content`. Rejects with the caller's reason, or as the work does. */
    async join(key, content, caller, work) {
        this.forget();
        const found = this.entries.get(key);
        // What was just cancelled is no one to join.
        const known = found?.controller.signal.aborted && !found.done ? undefined : found;
        if (known && known.content !== content)
            return null;
        const entry = known ?? this.begin(key, content, work);
        entry.callers++;
        if (entry.linger)
            clearTimeout(entry.linger);
        entry.linger = null;
        try {
            return { value: await unlessGone(entry.promise, caller), repeated: known !== undefined };
        }
        finally {
            if (--entry.callers === 0 && !entry.done)
                this.leave(entry);
        }
    }
    begin(key, content, work) {
        const controller = new AbortController();
        const entry = {
            content,
            promise: work(controller.signal),
            controller,
            callers: 0,
            linger: null,
            done: false,
            bytes: 0,
            until: 0,
        };
        this.entries.set(key, entry);
        entry.promise.then((value) => this.keep(key, entry, value), () => this.drop(key, entry));
        return entry;
    }
    keep(key, entry, value) {
        entry.done = true;
        const bytes = this.bytesOf(value);
        const { keepMs, keepCount, keepBytes } = this.options;
        if (keepMs === 0 || bytes > keepBytes / 8) {
            this.drop(key, entry);
            return;
        }
        entry.bytes = bytes;
        entry.until = performance.now() + keepMs;
        this.bytes += bytes;
        // To the end: what was answered longest ago is the first to go.
        this.entries.delete(key);
        this.entries.set(key, entry);
        for (const [oldKey, old] of this.entries) {
            if (this.bytes <= keepBytes && this.entries.size <= keepCount)
                break;
            if (old.done && old !== entry)
                this.drop(oldKey, old);
        }
    }
    drop(key, entry) {
        entry.done = true;
        if (entry.linger)
            clearTimeout(entry.linger);
        if (this.entries.get(key) !== entry)
            return;
        this.entries.delete(key);
        this.bytes -= entry.bytes;
    }
    leave(entry) {
        const cancel = () => entry.controller.abort(new Error('nobody waits for the answer any more'));
        if (this.options.lingerMs === 0)
            cancel();
        else
            entry.linger = setTimeout(cancel, this.options.lingerMs);
    }
    forget() {
        const now = performance.now();
        for (const [key, entry] of this.entries) {
            if (!entry.done)
                continue;
            if (entry.until > now)
                break;
            this.drop(key, entry);
        }
    }
}
function unlessGone(promise, signal) {
    if (signal.aborted)
        return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
        const gone = () => reject(signal.reason);
        signal.addEventListener('abort', gone, { once: true });
        promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', gone));
    });
}
