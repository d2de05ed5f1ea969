// Processes are killed outright (SIGKILL) and stay down until they are raised: one, the run's driver, or all of a role. Or
// only the process that has the members, and the one that supervises it starts another.
// What the dead held must be in other hands within ten seconds, unless nobody is left who could take it.

import { setTimeout as wait } from 'node:timers/promises';
import { RunLedger } from '../../../shared/ledger/run-ledger.ts';
import type { Fault } from '../fault.ts';
import { type Held, heldBy } from '../held.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';
import { unheard } from '../unheard.ts';

const TAKE_OVER_MS = 10_000;
const LOOK_MS = 100;

interface How {
  /** What is seen where nobody is left who could take over; left out: others do. */
  visible?: Visible | null;
  /** The process that has the members, and not the one that supervises it. */
  workerOnly?: boolean;
  /** It stays down for longer than a lease. */
  beyondLease: boolean;
}

export class Felled implements Fault {
  visible: Visible | null;
  private readonly scene: Scene;
  private readonly names: readonly string[];
  private readonly othersTakeOver: boolean;
  private readonly workerOnly: boolean;
  private readonly beyondLease: boolean;
  private takenOver: Promise<readonly Held[]> = Promise.resolve([]);

  constructor(scene: Scene, names: readonly string[], how: How) {
    this.scene = scene;
    this.names = names;
    this.visible = how.visible ?? null;
    this.othersTakeOver = how.visible === undefined;
    this.workerOnly = how.workerOnly ?? false;
    this.beyondLease = how.beyondLease;
  }

  get what(): string {
    return `${this.names.join(', ')}${this.workerOnly ? ', its worker alone' : ''}`;
  }

  async begin(): Promise<void> {
    const { troupe, ledger, run } = this.scene;
    const pids = this.names.map((name) => troupe.pidOf(name));
    await Promise.all(this.names.map((name) => (this.workerOnly ? this.killWorker(name) : troupe.fell(name))));
    const sinceMs = performance.now();
    if (this.othersTakeOver && this.beyondLease && !this.workerOnly) this.visible = await unheard(this.scene, pids);
    const held = await heldBy(ledger.admin, run, (worker) =>
      pids.some((pid) => worker.split('-')[1] === String(pid)),
    ).catch(() => []);
    if (this.othersTakeOver) this.takenOver = this.watch(held, sinceMs).catch(() => []);
  }

  async heal(): Promise<void> {
    for (const name of this.names) this.scene.troupe.raise(name);
  }

  private killWorker(name: string): void {
    for (const pid of this.scene.troupe.childrenOf(name)) process.kill(pid, 'SIGKILL');
  }

  /** Meaningful while it is the only fault, and the run was not paused meanwhile. */
  async judge(): Promise<string[]> {
    const waiting = await this.takenOver;
    return waiting.map(
      (h) => `not taken over within ${TAKE_OVER_MS / 1000} s of the death of ${h.worker}: member ${h.id}`,
    );
  }

  /** Who is in nobody else's hands when the time is over; asked once more then, also where this process was late. */
  private async watch(held: readonly Held[], sinceMs: number): Promise<readonly Held[]> {
    const { ledger, run } = this.scene;
    const began = new RunLedger(ledger.admin, run);
    for (let waiting = held; ; ) {
      const late = performance.now() - sinceMs > TAKE_OVER_MS;
      const now = await heldBy(ledger.admin, run, () => true);
      waiting = waiting.filter((h) => now.some((n) => n.id === h.id && n.token === h.token));
      if (waiting.length === 0 || late) return waiting;
      if ((await began.field('state')) !== 'running') return [];
      await wait(LOOK_MS);
    }
  }
}
