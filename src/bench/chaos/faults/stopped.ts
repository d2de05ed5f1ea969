// A process stands still (SIGSTOP) for longer than any lock or lease, and then goes on as if nothing had happened: what it
// still says for the members that it had must not count twice.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';
import { unheard } from '../unheard.ts';

export class Stopped implements Fault {
  visible: Visible | null = null;
  readonly what: string;
  private readonly scene: Scene;

  constructor(scene: Scene, name: string) {
    this.scene = scene;
    this.what = name;
  }

  async begin(): Promise<void> {
    this.scene.troupe.signal(this.what, 'SIGSTOP');
    this.visible = await unheard(this.scene, [this.scene.troupe.pidOf(this.what)]);
  }

  async heal(): Promise<void> {
    this.scene.troupe.signal(this.what, 'SIGCONT');
  }
}
