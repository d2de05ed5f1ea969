// Ctrl-C, SIGTERM and a terminal that closes: the first drains, the second stops at once. Before there is anything to drain, the first ends the command.
import { EXIT } from '../shared/errors.js';
const STOP_WITHIN_MS = 4_500;
export class Interrupts {
    count = 0;
    signal = 'SIGINT';
    force = () => { };
    first = null;
    controller = new AbortController();
    handlers;
    constructor() {
        this.handlers = ['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => [signal, () => this.came(signal)]);
        for (const [signal, handler] of this.handlers)
            process.on(signal, handler);
    }
    onFirst(action) {
        this.first = action;
        if (this.count > 0)
            action();
    }
    /** What must not outlive us: called at the latest moment before a forced end. */
    onForce(action) {
        this.force = action;
    }
    /** Aborted by the second signal. */
    get second() {
        return this.controller.signal;
    }
    get exitCode() {
        return this.signal === 'SIGINT' ? EXIT.interrupted : this.signal === 'SIGTERM' ? 143 : 129;
    }
    close() {
        for (const [signal, handler] of this.handlers)
            process.off(signal, handler);
    }
    came(signal) {
        this.count++;
        this.signal = signal;
        if (this.count === 1) {
            if (this.first)
                this.first();
            return;
        }
        this.controller.abort();
        // Whatever hangs: twice means gone within five seconds. Containers end themselves without us.
        setTimeout(() => {
            this.force();
            process.exit(this.exitCode);
        }, STOP_WITHIN_MS).unref();
    }
}
