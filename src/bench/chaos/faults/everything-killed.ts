// The power goes: every process of the farm and its Redis at once (SIGKILL), and all of it comes back.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';
import { SILENCE } from './redis-fault.ts';

export class EverythingKilled implements Fault {
  readonly what = 'everything';
  readonly visible: Visible | null;
  private readonly scene: Scene;

  /** `seen`: it lasts so long that somebody has to see it. */
  constructor(scene: Scene, seen: boolean) {
    this.scene = scene;
    // Nobody is left who could log it.
    const { log: _, ...sight } = SILENCE;
    this.visible = seen ? sight : null;
  }

  async begin(): Promise<void> {
    const { troupe, ledger } = this.scene;
    await Promise.all([ledger.kill(), ...troupe.names.map((name) => troupe.fell(name))]);
  }

  async heal(): Promise<void> {
    const { troupe, ledger } = this.scene;
    await ledger.start();
    for (const name of troupe.names) troupe.raise(name);
  }
}
