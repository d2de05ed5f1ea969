// The gateway as a child of `farm up`: a process of its own, so that fifty megabytes of JSON stall no other role. It is
// started again when it crashes, and ends with its parent. A port that was not asked for by name may be taken: then
// there is no gateway, and the log says so.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../shared/config.js';
import { EXIT } from '../shared/errors.js';
const MAIN = fileURLToPath(new URL('main.js', import.meta.url));
const RESTART_MS = 500;
const STOP_MS = 4_000;
export const DEFAULT_PORT = 8_787;
export class GatewayChild {
    order;
    log;
    child = null;
    exited = Promise.resolve();
    ending = false;
    wasBound = false;
    constructor(order, log) {
        this.order = order;
        this.log = log;
    }
    /** Resolves when it is bound: 0, or the exit code with which it could not be started. */
    async start() {
        const exit = await this.begin();
        if (exit === EXIT.missing && this.order.port === null && this.order.configs.length === 0) {
            this.log.warn({ port: DEFAULT_PORT }, 'no gateway: see above; --port chooses another port');
            return EXIT.ok;
        }
        return exit;
    }
    begin() {
        const { port, configs } = this.order;
        const args = [
            'serve',
            '--port',
            String(port ?? DEFAULT_PORT),
            ...configs.flatMap((config) => ['--config', config]),
        ];
        const child = fork(MAIN, args, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], env: childEnvironment() });
        this.child = child;
        return new Promise((resolve) => {
            child.once('message', () => {
                this.wasBound = true;
                resolve(EXIT.ok);
            });
            this.exited = new Promise((over) => {
                const gone = (code) => {
                    this.child = null;
                    over();
                    resolve(code || EXIT.unsound);
                    if (this.wasBound && !this.ending)
                        void this.again(code);
                };
                child.once('error', () => gone(null));
                child.once('exit', gone);
            });
        });
    }
    async again(code) {
        this.log.warn({ code }, 'the gateway died; starting another');
        await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
        if (!this.ending)
            await this.begin();
    }
    /** Answers what it has; `now` cuts the wait short. */
    async drain(graceMs, now) {
        this.ending = true;
        this.tell('drain');
        const timer = setTimeout(() => this.tell('stop'), graceMs);
        const stop = () => this.tell('stop');
        now.addEventListener('abort', stop, { once: true });
        if (now.aborted)
            stop();
        const killer = setTimeout(() => this.child?.kill('SIGKILL'), graceMs + STOP_MS);
        await this.exited;
        clearTimeout(timer);
        clearTimeout(killer);
        now.removeEventListener('abort', stop);
    }
    tell(what) {
        if (this.child?.connected)
            this.child.send(what, () => { });
        if (what === 'stop')
            setTimeout(() => this.child?.kill('SIGKILL'), STOP_MS).unref();
    }
}
