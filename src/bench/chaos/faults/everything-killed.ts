// Every process of the farm and its Redis is killed at once (SIGKILL), and all of it comes back. With the power, what their
// disks had not been told to keep is gone too.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';
import { SILENCE } from './redis-fault.ts';

export class EverythingKilled implements Fault {
  readonly what: string;
  readonly visible: Visible | null;
  private readonly scene: Scene;
  private readonly withThePower: boolean;

  /** `seen`: it lasts so long that somebody has to see it. */
  constructor(scene: Scene, seen: boolean, withThePower = false) {
    this.scene = scene;
    this.withThePower = withThePower;
    this.what = withThePower ? 'the power' : 'everything';
    // Nobody is left who could log it.
    const { log: _, ...sight } = SILENCE;
    this.visible = seen ? sight : null;
  }

  async begin(): Promise<void> {
    const { troupe, ledger } = this.scene;
    await Promise.all([ledger.kill(), ...troupe.names.map((name) => troupe.fell(name))]);
    if (this.withThePower) for (const disk of [this.scene.disk, this.scene.ledgerDisk]) await disk.losePower();
  }

  async heal(): Promise<void> {
    const { troupe, ledger } = this.scene;
    await ledger.start();
    for (const name of troupe.names) troupe.raise(name);
  }
}
