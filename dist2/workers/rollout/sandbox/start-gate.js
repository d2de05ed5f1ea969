// The gate through which every start of a box goes: how many start at once and how much memory all boxes take together,
// apart from how many run. Whoever decides (this process alone, or all on one engine through Redis) is asked for the
// first in the line only; who has an episode waiting goes before who makes boxes ahead.
import { BoxLost } from '../../../shared/sandbox.js';
import { within } from '../../../shared/within.js';
const BEAT_MS = 5_000;
/** For one answer of the arbiter. */
const CLAIM_MS = 2_000;
export class StartGate {
    /** Called when boxes that wait for work keep others from starting. */
    onPressed = () => { };
    arbiter;
    line = [];
    held = { starting: 0, memoryMb: 0 };
    beat;
    running = null;
    /** What is held has changed since it was told. */
    changed = false;
    wake = () => { };
    closed = false;
    constructor(arbiter) {
        this.arbiter = arbiter;
        this.beat = setInterval(() => this.kick(), BEAT_MS);
        this.beat.unref();
    }
    /** Waits for leave to start a box. Throws the signal's reason, or BoxLost for a box that can never fit. */
    enter(memoryMb, urgent, signal) {
        signal.throwIfAborted();
        if (memoryMb > this.arbiter.bounds.memoryMb)
            throw new BoxLost('start', 'engine', 'start:memory', `a box of ${memoryMb} MB does not fit into the ${this.arbiter.bounds.memoryMb} MB that boxes may take on this engine`);
        return new Promise((resolve, reject) => {
            const waiting = {
                memoryMb,
                urgent,
                enter: (pass) => {
                    signal.removeEventListener('abort', abort);
                    resolve(pass);
                },
            };
            const abort = () => {
                const at = this.line.indexOf(waiting);
                if (at >= 0)
                    this.line.splice(at, 1);
                reject(signal.reason);
            };
            signal.addEventListener('abort', abort, { once: true });
            this.line.push(waiting);
            this.kick();
        });
    }
    async close() {
        this.closed = true;
        clearInterval(this.beat);
        this.wake();
        await this.running;
        await within(this.arbiter.leave(), CLAIM_MS, null).catch(() => { });
    }
    kick() {
        this.changed = true;
        this.wake();
        if (this.closed)
            return;
        this.running ??= this.serve().finally(() => {
            this.running = null;
            if (this.changed && !this.closed)
                this.kick();
        });
    }
    async serve() {
        while (!this.closed && (this.changed || this.line.length > 0)) {
            this.changed = false;
            const first = this.line.find((one) => one.urgent()) ?? this.line[0] ?? null;
            // Without an answer nothing is started; the wait has its own deadline.
            const answer = await within(this.arbiter.claim(this.held, first?.memoryMb ?? null), CLAIM_MS, null).catch(() => null);
            if (answer?.pressed)
                this.onPressed();
            if (answer?.granted && first !== null)
                this.admit(first);
            else if (first !== null && !this.changed)
                await this.change();
        }
    }
    admit(first) {
        const at = this.line.indexOf(first);
        // It was called off meanwhile: what was granted is given back with the next claim.
        if (at < 0) {
            this.changed = true;
            return;
        }
        this.line.splice(at, 1);
        this.held.starting += 1;
        this.held.memoryMb += first.memoryMb;
        let [starting, there] = [true, true];
        const started = () => {
            if (!starting)
                return;
            starting = false;
            this.held.starting -= 1;
            this.kick();
        };
        first.enter({
            started,
            gone: () => {
                started();
                if (!there)
                    return;
                there = false;
                this.held.memoryMb -= first.memoryMb;
                this.kick();
            },
        });
    }
    change() {
        return new Promise((resolve) => {
            const { pollMs } = this.arbiter;
            const timer = pollMs === null ? undefined : setTimeout(resolve, pollMs);
            this.wake = () => {
                clearTimeout(timer);
                resolve();
            };
        });
    }
}
/** For one process alone: the `rollout` command, a gateway's own boxes. */
export function localArbiter(bounds) {
    return {
        bounds,
        pollMs: null,
        claim: async (held, wantMb) => {
            const want = wantMb ?? 0;
            const fits = held.memoryMb + want <= bounds.memoryMb;
            return { granted: want > 0 && fits && held.starting < bounds.startsAtOnce, pressed: !fits };
        },
        leave: async () => { },
    };
}
