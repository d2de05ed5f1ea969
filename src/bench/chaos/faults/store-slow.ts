// The disk under the store is slow: it stands still for most of the time, and never for long.

import { setTimeout as wait } from 'node:timers/promises';
import type { Disk } from '../disk.ts';
import type { Fault } from '../fault.ts';

const STILL_MS = 600;
const MOVING_MS = 150;

export class StoreSlow implements Fault {
  readonly what = 'the store’s disk stands still, again and again';
  readonly visible = null;
  private readonly disk: Disk;
  private over = false;
  private loop: Promise<void> = Promise.resolve();

  constructor(disk: Disk) {
    this.disk = disk;
  }

  async begin(): Promise<void> {
    this.loop = this.pulse();
  }

  async heal(): Promise<void> {
    this.over = true;
    await this.loop;
    await this.disk.freeze(false);
  }

  private async pulse(): Promise<void> {
    while (!this.over) {
      await this.disk.freeze(true);
      await wait(STILL_MS);
      await this.disk.freeze(false);
      await wait(MOVING_MS);
    }
  }
}
