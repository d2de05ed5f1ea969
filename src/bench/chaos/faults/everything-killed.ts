// The power goes: every process of the farm and its Redis at once (SIGKILL), and all of it comes back.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';

export class EverythingKilled implements Fault {
  readonly what = 'everything';
  readonly visible = null;
  private readonly scene: Scene;

  constructor(scene: Scene) {
    this.scene = scene;
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
