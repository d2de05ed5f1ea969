// Runs roles as child processes of one command: one that crashes is started again, what it held is given back at once,
// and all of them end with the command, drained or at once.
//
//   up ──crash of a child──> buried, started again after a rest
//    ├─ drain ──all over, or 30 s──> stop
//    └─ stop ──4 s──> killed
import { fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../shared/config.js';
const ROLE_MAIN = fileURLToPath(new URL('role-main.js', import.meta.url));
export const DRAIN_MS = 30_000;
const STOP_MS = 4_000;
const RESTART_MS = 500;
export class Supervisor {
    children = new Map();
    options;
    ending = false;
    started = 0;
    constructor(options) {
        this.options = options;
        for (const order of options.orders)
            this.start(order);
    }
    /** Names of the workers that run now. */
    get workers() {
        return [...this.children.values()].map((c) => c.worker);
    }
    start(order) {
        const worker = `${order.role}-${process.pid}-${++this.started}-${Date.now().toString(36)}`;
        const child = fork(ROLE_MAIN, [JSON.stringify({ ...order, worker })], {
            stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
            env: childEnvironment(this.options.environment),
            serialization: 'json',
        });
        if (child.stderr)
            createInterface({ input: child.stderr }).on('line', (line) => this.options.lines(`${line}\n`));
        const ended = new Promise((resolve) => {
            child.once('error', () => resolve());
            child.once('exit', (code, signal) => {
                this.children.delete(order);
                resolve();
                if (!this.ending)
                    void this.recover(order, worker, code, signal);
            });
        });
        this.children.set(order, { process: child, worker, ended });
    }
    async recover(order, worker, code, signal) {
        this.options.log.warn({ role: order.role, worker, code, signal }, 'a worker died; starting another');
        // SIGKILL and SIGTERM come from outside (an operator, the kernel's OOM killer): no member is to blame for them.
        const signature = signal === 'SIGKILL' || signal === 'SIGTERM' ? '' : `${order.role} died: ${signal ?? `exit ${code}`}`;
        await this.options.onDeath(worker, signature).catch(() => { });
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
        if (!this.ending)
            this.start(order);
    }
    /** Lets what is at work end; after the time allowed it is stopped. `now` cuts the wait short. */
    async drain(now) {
        this.ending = true;
        this.tell('drain');
        const deadline = new Promise((resolve) => {
            const timer = setTimeout(resolve, DRAIN_MS);
            timer.unref();
            now.addEventListener('abort', () => resolve(), { once: true });
        });
        await Promise.race([this.allEnded(), deadline]);
        await this.stop();
    }
    /** Ends everything within seconds; nothing of ours is left. */
    async stop() {
        this.ending = true;
        this.tell('stop');
        const timer = setTimeout(() => this.kill(), STOP_MS);
        await this.allEnded();
        clearTimeout(timer);
    }
    /** At once, without a word. */
    kill() {
        for (const child of this.children.values())
            child.process.kill('SIGKILL');
    }
    tell(what) {
        for (const child of this.children.values())
            if (child.process.connected)
                child.process.send(what, () => { });
    }
    async allEnded() {
        await Promise.all([...this.children.values()].map((c) => c.ended));
    }
}
