// The disk under the store is full, refuses writes, or stands still.

import type { Disk } from '../disk.ts';
import type { Fault } from '../fault.ts';
import type { Visible } from '../sight.ts';

const SAYS = { full: /the disk is full/, readonly: /read-only/i, frozen: /waiting for the store/ } as const;
const WITHIN_MS = 30_000;

export class StoreFault implements Fault {
  readonly what: string;
  readonly visible: Visible | null;
  private readonly disk: Disk;
  private readonly kind: keyof typeof SAYS;

  constructor(disk: Disk, kind: StoreFault['kind']) {
    this.disk = disk;
    this.kind = kind;
    this.what = `the store's disk ${kind}`;
    const says = SAYS[kind];
    // A frozen disk fails nobody: whoever writes waits, and says so.
    this.visible = { status: says, top: says, log: says, withinMs: WITHIN_MS };
  }

  async begin(): Promise<void> {
    if (this.kind === 'full') this.disk.fill();
    else if (this.kind === 'readonly') await this.disk.refuseWrites(true);
    else await this.disk.freeze(true);
  }

  async heal(): Promise<void> {
    if (this.kind === 'full') this.disk.empty();
    else if (this.kind === 'readonly') await this.disk.refuseWrites(false);
    else await this.disk.freeze(false);
  }
}
