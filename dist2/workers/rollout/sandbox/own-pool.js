// The pool of a process that belongs to no fleet: a command's, a gateway's. It keeps to the engine's bounds alone, and
// removes what processes of its kind left on the engine when they were killed, with its first box and while it lives.
import { isKnownDead, processIdentity } from '../../../shared/process-identity.js';
import { localGate } from './gates.js';
import { createPool } from './pool.js';
const SWEEP_MS = 20_000;
/** On the labels of this process's boxes. */
export function ownWorker(farm) {
    return `${farm}-${processIdentity()}`;
}
export function createOwnPool(driver, farm) {
    const pool = createPool(driver, () => localGate(driver));
    const alive = (worker) => !isKnownDead(worker.slice(farm.length + 1));
    const sweep = async () => {
        await driver.sweep(farm, alive).catch(() => 0);
    };
    let sweeping = null;
    let last = Promise.resolve();
    return {
        kind: pool.kind,
        prepare: (image, runtime) => pool.prepare(image, runtime),
        answers: () => pool.answers(),
        engine: () => pool.engine(),
        sweep: (name, isAlive) => pool.sweep(name, isAlive),
        open: (limits, labels, signal) => {
            if (sweeping === null) {
                last = sweep();
                sweeping = setInterval(() => {
                    last = sweep();
                }, SWEEP_MS);
                sweeping.unref();
            }
            return pool.open(limits, labels, signal);
        },
        close: async () => {
            if (sweeping !== null)
                clearInterval(sweeping);
            await Promise.all([pool.close(), last]);
        },
    };
}
