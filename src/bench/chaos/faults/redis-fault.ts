// Redis in trouble: killed and started again on its append-only file, or standing still for longer than any lock.

import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';

export const SILENCE: Visible = {
  status: /does not answer/,
  top: /waiting for Redis.*since/,
  // Whoever is just starting does not wait: it ends, says why, and is started again.
  log: /waiting for Redis|Redis at .* does not answer/,
  withinMs: 30_000,
};

export class RedisFault implements Fault {
  readonly what: string;
  readonly visible: Visible | null;
  private readonly scene: Scene;
  private readonly kind: 'killed' | 'stopped';

  /** `seen`: it is away for so long that somebody has to see it. */
  constructor(scene: Scene, kind: RedisFault['kind'], seen: boolean) {
    this.scene = scene;
    this.kind = kind;
    this.what = `Redis ${kind}`;
    this.visible = seen ? SILENCE : null;
  }

  async begin(): Promise<void> {
    if (this.kind === 'killed') await this.scene.ledger.kill();
    else this.scene.ledger.signal('SIGSTOP');
  }

  async heal(): Promise<void> {
    if (this.kind === 'killed') await this.scene.ledger.start();
    else this.scene.ledger.signal('SIGCONT');
  }
}
