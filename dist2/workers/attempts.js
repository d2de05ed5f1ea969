// The attempts at work in this process: their leases are renewed every second on monotonic time, and each hears of it
// when it may not speak any more, so that nobody goes on working for a group that is closed.
import { BEAT_MS } from '../shared/ledger/member-ledger.js';
export class AttemptEnded extends Error {
    reason;
    constructor(reason) {
        super(`the attempt was told to end: ${reason}`);
        this.reason = reason;
    }
}
export class Attempts {
    running = new Map();
    waiting = [];
    ledger;
    timer;
    constructor(ledger) {
        this.ledger = ledger;
        this.timer = setInterval(() => void this.beat(), BEAT_MS);
    }
    start(attempt, lane, phase) {
        const controller = new AbortController();
        const entry = { attempt, signal: controller.signal, controller, phase, lane, after: null };
        this.running.set(attempt.token, entry);
        return entry;
    }
    end(running) {
        this.running.delete(running.attempt.token);
        if (this.running.size === 0)
            for (const resolve of this.waiting.splice(0))
                resolve();
    }
    /** Resolves when nothing is at work. */
    async idle() {
        if (this.running.size === 0)
            return;
        await new Promise((resolve) => this.waiting.push(resolve));
    }
    /** Tells every attempt to end now. */
    abortAll() {
        for (const entry of this.running.values())
            entry.controller.abort(new AttemptEnded('stop'));
    }
    close() {
        clearInterval(this.timer);
    }
    async beat() {
        const byRun = new Map();
        for (const entry of this.running.values()) {
            const list = byRun.get(entry.attempt.run);
            if (list)
                list.push(entry);
            else
                byRun.set(entry.attempt.run, [entry]);
        }
        for (const [run, entries] of byRun) {
            try {
                const standings = await this.ledger.beat(run, entries.map((e) => ({
                    group: e.attempt.group,
                    member: e.attempt.member,
                    token: e.attempt.token,
                    phase: e.phase,
                })));
                entries.forEach((entry, i) => {
                    const standing = standings[i];
                    if (standing !== undefined && standing !== 'ok')
                        entry.controller.abort(new AttemptEnded(standing));
                });
            }
            catch {
                // Redis is away: the work goes on, and the token decides whether its answer counts.
            }
        }
    }
}
