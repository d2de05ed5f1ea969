// Calls that this process has taken before there was a permit for them: each begins the moment a call of this process
// ends well, with that call's permit, so that the upstream's slots do not stand empty while Redis is told. They are held
// for a moment only: what does not get its turn soon is given back, for others to take.
/** Where calls take longer than this, the way to Redis is nothing to them. */
const QUICK_MS = 250;
const HELD_MS = 200;
const REST_MS = 1_000;
export class AheadLine {
    line = [];
    giveBack;
    timer = null;
    restUntil = 0;
    constructor(giveBack) {
        this.giveBack = giveBack;
    }
    get size() {
        return this.line.length;
    }
    get tokens() {
        return this.line.map(({ call }) => call.token);
    }
    /** May any be taken, with calls that usually take so long? */
    worthwhile(usualMs) {
        return usualMs !== null && usualMs <= QUICK_MS && performance.now() >= this.restUntil;
    }
    hold(call) {
        this.line.push({ call, since: performance.now() });
        this.timer ??= setTimeout(() => this.look(), HELD_MS);
    }
    /** The next one to begin. */
    next() {
        const first = this.line[0];
        // A process that slept may no longer begin what others have taken over meanwhile.
        if (first === undefined || performance.now() - first.since > 2 * HELD_MS)
            return null;
        this.line.shift();
        return first.call;
    }
    /** Gives all of it back. */
    clear() {
        if (this.timer !== null)
            clearTimeout(this.timer);
        this.timer = null;
        const calls = this.line.map(({ call }) => call);
        this.line = [];
        if (calls.length > 0)
            this.giveBack(calls);
    }
    look() {
        this.timer = null;
        const first = this.line[0];
        if (first === undefined)
            return;
        const left = HELD_MS - (performance.now() - first.since);
        if (left > 0)
            this.timer = setTimeout(() => this.look(), left);
        else {
            this.restUntil = performance.now() + REST_MS;
            this.clear();
        }
    }
}
