// How much may be inside at once. What comes through `tryTake` is refused beyond that (429, and the caller comes back);
// what comes through `take` waits in line for as long as its signal lets it. Units are the caller's: bytes, samples, requests.
export class Admission {
    capacity;
    used = 0;
    line = [];
    constructor(capacity) {
        this.capacity = capacity;
    }
    get inside() {
        return this.used;
    }
    get waiting() {
        return this.line.length;
    }
    /** True if there was room, which is then taken. More than all of it goes in alone. */
    tryTake(units) {
        if (this.line.length > 0 || (this.used > 0 && this.used + units > this.capacity))
            return false;
        this.used += units;
        return true;
    }
    /** In order of arrival. Rejects with the signal's reason. */
    take(units, signal) {
        if (signal.aborted)
            return Promise.reject(signal.reason);
        if (this.tryTake(units))
            return Promise.resolve();
        return new Promise((resolve, reject) => {
            const leave = () => {
                this.line.splice(this.line.indexOf(waiting), 1);
                reject(signal.reason);
                this.call();
            };
            const waiting = {
                units,
                go: () => {
                    signal.removeEventListener('abort', leave);
                    resolve();
                },
            };
            this.line.push(waiting);
            signal.addEventListener('abort', leave, { once: true });
        });
    }
    /** Takes without asking. */
    add(units) {
        this.used += units;
    }
    give(units) {
        this.used -= units;
        this.call();
    }
    call() {
        for (;;) {
            const next = this.line[0];
            if (!next || (this.used > 0 && this.used + next.units > this.capacity))
                return;
            this.line.shift();
            this.used += next.units;
            next.go();
        }
    }
}
