// Redis is full: its limit is set to what it holds. Outcomes must still be taken, and nothing new is opened.

import { RunLedger } from '../../../shared/ledger/run-ledger.ts';
import type { Fault } from '../fault.ts';
import type { Scene } from '../scene.ts';
import type { Visible } from '../sight.ts';

export class RedisFull implements Fault {
  readonly what = 'Redis full';
  visible: Visible | null = {
    status: /Redis is above its high-water mark: nothing new is opened/,
    top: /Redis is above its high-water mark: nothing new is opened/,
    log: /Redis is above its high-water mark/,
    withinMs: 20_000,
  };
  private readonly scene: Scene;
  private before: string | null = null;

  constructor(scene: Scene) {
    this.scene = scene;
  }

  async begin(): Promise<void> {
    const { admin } = this.scene.ledger;
    const { next, groups } = await new RunLedger(admin, this.scene.run).fields();
    // Where everything is open already, nothing waits for room.
    if (Number(next) >= Number(groups)) this.visible = null;
    const answer = (await admin.call('CONFIG', 'GET', 'maxmemory')) as string[];
    this.before = String(answer.flat()[1] ?? '0');
    const used = /^used_memory:(\d+)/m.exec(await admin.info('memory'))?.[1] as string;
    await admin.call('CONFIG', 'SET', 'maxmemory', used);
  }

  async heal(): Promise<void> {
    if (this.before !== null) await this.scene.ledger.admin.call('CONFIG', 'SET', 'maxmemory', this.before);
  }
}
