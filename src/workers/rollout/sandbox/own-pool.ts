// The pool of a process that belongs to no fleet: a command's, a gateway's. It keeps to the engine's bounds alone, and
// removes what processes of its kind left on the engine when they were killed, with its first box and while it lives.

import { isKnownDead, processIdentity } from '../../../shared/process-identity.ts';
import type { SandboxDriver } from '../../../shared/sandbox.ts';
import { localGate } from './gates.ts';
import { createPool } from './pool.ts';

/** The label by which such boxes are found again: no farm's id. */
export type OwnFarm = 'command' | 'gateway';

const SWEEP_MS = 20_000;

/** On the labels of this process's boxes. */
export function ownWorker(farm: OwnFarm): string {
  return `${farm}-${processIdentity()}`;
}

export function createOwnPool(driver: SandboxDriver, farm: OwnFarm): SandboxDriver {
  const pool = createPool(driver, () => localGate(driver));
  const alive = (worker: string): boolean => !isKnownDead(worker.slice(farm.length + 1));
  const sweep = async (): Promise<void> => {
    await driver.sweep(farm, alive).catch(() => 0);
  };
  let sweeping: NodeJS.Timeout | null = null;
  let last: Promise<void> = Promise.resolve();
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
      if (sweeping !== null) clearInterval(sweeping);
      await Promise.all([pool.close(), last]);
    },
  };
}
