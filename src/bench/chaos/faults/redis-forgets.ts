// Redis loses writes that it had acknowledged, as one does that syncs every second: it is killed, the end of its file is cut
// off, and it is started on what is left. What was accepted after the cut is done anew, and a trainer is told that its cursor is gone.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';

const KB = 1024;
const LEAST_KB = 4;
const MOST_KB = 96;

export class RedisForgets implements Fault {
  readonly forgets = true;
  readonly visible: Visible = {
    log: /Redis has lost writes|its ledger has all that the store has/,
    withinMs: 30_000,
  };
  private readonly scene: Scene;
  private readonly bytes: number;
  private cut: number | null = null;

  constructor(scene: Scene, target: number) {
    this.scene = scene;
    this.bytes = (LEAST_KB + (target % (MOST_KB - LEAST_KB))) * KB;
  }

  get what(): string {
    return `Redis forgets its last ${this.cut ?? this.bytes} bytes`;
  }

  async begin(): Promise<void> {
    const { ledger } = this.scene;
    await ledger.kill();
    this.cut = ledger.forget(this.bytes);
    await ledger.start();
  }

  async heal(): Promise<void> {
    await this.scene.ledger.start();
  }
}
