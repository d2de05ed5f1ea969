// The pool: a driver whose boxes are there when they are wanted. It makes them ahead on another driver, keeps to the
// engine's bounds on starts and memory, and, where a run allows it, hands a box from one of its episodes to the next
// after a proven reset. What stands ready carries the labels of its worker, so that a sweep finds it.

import { performance } from 'node:perf_hooks';
import { messageOf } from '../../../shared/errors.ts';
import { type Box, BoxLost, type Labels, type SandboxDriver, type SandboxLimits } from '../../../shared/sandbox.ts';
import { within } from '../../../shared/within.ts';
import { LentBox } from './lent-box.ts';
import { Shelf, type ShelfBounds } from './shelf.ts';
import type { StartGate } from './start-gate.ts';

export const POOL_BOUNDS: Readonly<ShelfBounds> = {
  waitMs: 120_000,
  ahead: 8,
  demandMs: 10_000,
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
export function createPool(
  driver: SandboxDriver,
  gate: () => Promise<StartGate>,
  bounds: Partial<ShelfBounds> = {},
): SandboxDriver {
  return new SandboxPool(driver, gate, { ...POOL_BOUNDS, ...bounds });
}

class SandboxPool implements SandboxDriver {
  readonly kind: SandboxDriver['kind'];
  private readonly driver: SandboxDriver;
  private readonly makeGate: () => Promise<StartGate>;
  private gate: Promise<StartGate> | null = null;
  private readonly bounds: ShelfBounds;
  private readonly shelves = new Map<string, Shelf>();
  private readonly lent = new Set<Box>();
  private readonly tending: NodeJS.Timeout;
  private readonly ending = new AbortController();

  constructor(driver: SandboxDriver, gate: () => Promise<StartGate>, bounds: ShelfBounds) {
    this.kind = driver.kind;
    this.driver = driver;
    this.makeGate = gate;
    this.bounds = bounds;
    this.tending = setInterval(() => this.tend(), TEND_MS);
    this.tending.unref();
  }

  prepare: SandboxDriver['prepare'] = (image, runtime) => this.driver.prepare(image, runtime);
  answers: SandboxDriver['answers'] = () => this.driver.answers();
  engine: SandboxDriver['engine'] = () => this.driver.engine();
  sweep: SandboxDriver['sweep'] = (farm, alive) => this.driver.sweep(farm, alive);

  async open(limits: SandboxLimits, labels: Labels, signal: AbortSignal): Promise<Box> {
    const asked = performance.now();
    signal.throwIfAborted();
    const recycle = limits.recycle ?? null;
    const shelf = this.shelf(limits, labels, await this.gateOf());
    const taken = await shelf.take(recycle, signal);
    const stocked = { ...taken, episodes: taken.episodes + 1 };
    const box: Box = new LentBox(stocked.box, {
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
  async close(): Promise<void> {
    clearInterval(this.tending);
    this.ending.abort();
    const boxes = [...this.lent].map((box) => box.close());
    const shelves = [...this.shelves.values()].map((shelf) => shelf.close());
    const gate = await this.gate?.catch(() => null);
    await within(Promise.all([...boxes, ...shelves, this.driver.close()]), CLOSE_MS, null);
    await gate?.close();
  }

  private tend(): void {
    for (const [key, shelf] of this.shelves) {
      shelf.tend();
      if (shelf.empty) this.shelves.delete(key);
    }
  }

  private async gateOf(): Promise<StartGate> {
    this.gate ??= this.makeGate().then((gate) => {
      gate.onPressed = () => {
        for (const shelf of this.shelves.values()) shelf.yieldIdle();
      };
      return gate;
    });
    try {
      return await this.gate;
    } catch (error) {
      this.gate = null; // the engine may be there the next time
      throw new BoxLost('start', 'engine', 'start:engine', messageOf(error), error);
    }
  }

  private shelf(limits: SandboxLimits, labels: Labels, gate: StartGate): Shelf {
    const { image, memoryMb, cpus, pids, tmpfsMb, network, exec, runtime } = limits;
    const { farm, worker, use = 'agent' } = labels;
    const key = JSON.stringify([image, memoryMb, cpus, pids, tmpfsMb, network, exec, runtime, farm, worker, use]);
    const known = this.shelves.get(key);
    if (known !== undefined) return known;
    const open = (signal: AbortSignal) => this.driver.open(limits, { farm, worker, use }, signal);
    const shelf = new Shelf(open, memoryMb, gate, this.bounds);
    this.shelves.set(key, shelf);
    return shelf;
  }
}
