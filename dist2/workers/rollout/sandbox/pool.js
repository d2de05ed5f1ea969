// The pool: a driver whose boxes are there when they are wanted. It makes them ahead on another driver, keeps to the
// engine's bounds on starts and memory, and, where a run allows it, hands a box from one of its episodes to the next
// after a proven reset. What stands ready carries the labels of its worker, so that a sweep finds it.
import { performance } from 'node:perf_hooks';
import { messageOf } from '../../../shared/errors.js';
import { BoxLost } from '../../../shared/sandbox.js';
import { within } from '../../../shared/within.js';
import { LentBox } from './lent-box.js';
import { Shelf } from './shelf.js';
export const POOL_BOUNDS = {
    waitMs: 120_000,
    ahead: 8,
    aheadAgeMs: 10 * 60_000,
    idleMs: 15_000,
    episodes: 1_000,
    recycledAgeMs: 15 * 60_000,
    resetMs: 15_000,
};
const TEND_MS = 1_000;
/** For boxes that end when the pool does; their runners end them without us. */
const CLOSE_MS = 60_000;
/** `gate`: asked for with the first box, because it has to know the engine. */
export function createPool(driver, gate, bounds = {}) {
    return new SandboxPool(driver, gate, { ...POOL_BOUNDS, ...bounds });
}
class SandboxPool {
    kind;
    driver;
    makeGate;
    gate = null;
    bounds;
    shelves = new Map();
    lent = new Set();
    tending;
    ending = new AbortController();
    constructor(driver, gate, bounds) {
        this.kind = driver.kind;
        this.driver = driver;
        this.makeGate = gate;
        this.bounds = bounds;
        this.tending = setInterval(() => this.tend(), TEND_MS);
        this.tending.unref();
    }
    prepare = (image, runtime) => this.driver.prepare(image, runtime);
    answers = () => this.driver.answers();
    engine = () => this.driver.engine();
    sweep = (farm, alive) => this.driver.sweep(farm, alive);
    async open(limits, labels, signal) {
        const asked = performance.now();
        signal.throwIfAborted();
        const recycle = limits.recycle ?? null;
        const shelf = this.shelf(limits, labels, await this.gateOf());
        const taken = await shelf.take(recycle, signal);
        const stocked = { ...taken, episodes: taken.episodes + 1 };
        const box = new LentBox(stocked.box, {
            recycled: recycle !== null,
            startMs: performance.now() - asked,
            giveBack: async (sound) => {
                await shelf.giveBack(stocked, sound && !this.ending.signal.aborted, recycle);
                this.lent.delete(box);
            },
        });
        this.lent.add(box);
        // The episode that waited for it may have been told to end in the same moment.
        if (signal.aborted || this.ending.signal.aborted) {
            await box.close();
            signal.throwIfAborted();
        }
        return box;
    }
    /** Bounded: what hangs is left to the runners' own clocks and to the sweeper. */
    async close() {
        clearInterval(this.tending);
        this.ending.abort();
        const boxes = [...this.lent].map((box) => box.close());
        const shelves = [...this.shelves.values()].map((shelf) => shelf.close());
        const gate = await this.gate?.catch(() => null);
        await within(Promise.all([...boxes, ...shelves, this.driver.close()]), CLOSE_MS, null);
        await gate?.close();
    }
    tend() {
        for (const [key, shelf] of this.shelves) {
            shelf.tend();
            if (shelf.empty)
                this.shelves.delete(key);
        }
    }
    async gateOf() {
        this.gate ??= this.makeGate().then((gate) => {
            gate.onPressed = () => {
                for (const shelf of this.shelves.values())
                    shelf.yieldIdle();
            };
            return gate;
        });
        try {
            return await this.gate;
        }
        catch (error) {
            this.gate = null; // the engine may be there the next time
            throw new BoxLost('start', 'engine', 'start:engine', messageOf(error), error);
        }
    }
    shelf(limits, labels, gate) {
        const { image, memoryMb, cpus, pids, tmpfsMb, network, exec, runtime } = limits;
        const { farm, worker, use = 'agent' } = labels;
        const key = JSON.stringify([image, memoryMb, cpus, pids, tmpfsMb, network, exec, runtime, farm, worker, use]);
        const known = this.shelves.get(key);
        if (known !== undefined)
            return known;
        const open = (signal) => this.driver.open(limits, { farm, worker, use }, signal);
        const shelf = new Shelf(open, memoryMb, gate, this.bounds);
        this.shelves.set(key, shelf);
        return shelf;
    }
}
