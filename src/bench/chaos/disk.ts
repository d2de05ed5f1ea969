// A disk of the farm under fire: a small file system of its own, that can be full, refuse writes, stand still, or lose its
// power. As root on a loop device (ext4) or in memory; where neither can be had, faults of the disk are left out, and said to be.

import { execFile } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const DISKS = ['disk', 'ledger-disk'] as const;
type DiskName = (typeof DISKS)[number];

const MB = 1024 * 1024;
const BYTES: Record<DiskName, number> = { disk: 256 * MB, 'ledger-disk': 512 * MB };
const LARGEST_PIECE = 256 * MB;
const STEP_MS = 15_000;

export class Disk {
  /** Where it is mounted, or a plain folder. */
  readonly folder: string;
  readonly kind: 'loop' | 'memory' | 'none';
  private readonly image: string;
  private readonly ballast: string;
  private frozen = false;

  private constructor(folder: string, kind: Disk['kind']) {
    this.folder = folder;
    this.kind = kind;
    this.image = `${folder}.img`;
    this.ballast = path.join(folder, 'ballast');
  }

  static async make(room: string, name: DiskName = 'disk'): Promise<Disk> {
    const folder = path.join(room, name);
    mkdirSync(folder);
    if (process.getuid?.() !== 0) return new Disk(folder, 'none');
    try {
      const image = `${folder}.img`;
      const file = openSync(image, 'w');
      ftruncateSync(file, BYTES[name]);
      closeSync(file);
      await run('mkfs.ext4', ['-q', '-m', '0', image], { timeout: STEP_MS });
      await run('mount', ['-o', 'loop', image, folder], { timeout: STEP_MS });
      return new Disk(folder, 'loop');
    } catch {
      // no loop devices here
    }
    try {
      await run('mount', ['-t', 'tmpfs', '-o', `size=${BYTES[name]}`, 'farm-chaos', folder], { timeout: STEP_MS });
      return new Disk(folder, 'memory');
    } catch {
      return new Disk(folder, 'none');
    }
  }

  get store(): string {
    return path.join(this.folder, 'store');
  }

  /** Takes all that is free, but for less than a block. */
  fill(): void {
    for (let size = LARGEST_PIECE; size >= 4_096; size /= 2) {
      try {
        const free = statfsSync(this.folder);
        const bytes = Math.min(size, free.bavail * free.bsize);
        if (bytes > 0) writeFileSync(this.ballast, Buffer.alloc(bytes), { flag: 'a' });
      } catch {
        // full: a smaller piece may still fit
      }
    }
  }

  empty(): void {
    rmSync(this.ballast, { force: true });
  }

  async refuseWrites(refuse: boolean): Promise<void> {
    // A remount waits for no writer: it is refused while one has a file open, and asked for again.
    for (let tries = 0; ; tries++) {
      try {
        await run('mount', ['-o', `remount,${refuse ? 'ro' : 'rw'}`, this.folder], { timeout: STEP_MS });
        return;
      } catch (error) {
        if (tries === 50) throw error;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  }

  /** Every write waits until it thaws. */
  async freeze(freeze: boolean): Promise<void> {
    if (freeze === this.frozen) return;
    await run('fsfreeze', [freeze ? '--freeze' : '--unfreeze', this.folder], { timeout: STEP_MS });
    this.frozen = freeze;
  }

  /**
   * What was written and not synced is gone, as after a loss of power; nobody may be using it. What the file system has
   * handed to its device so far is copied, before it hands over the rest on its way out, and mounted in its place.
   */
  async losePower(): Promise<void> {
    const copy = `${this.image}.lost`;
    copyFileSync(this.image, copy);
    await run('umount', [this.folder], { timeout: STEP_MS });
    renameSync(copy, this.image);
    await run('mount', ['-o', 'loop', this.image, this.folder], { timeout: STEP_MS });
  }

  async close(): Promise<void> {
    if (this.kind === 'none') return;
    await this.freeze(false).catch(() => {});
    // A process that is on its way out may hold it a moment longer.
    await run('umount', [this.folder], { timeout: STEP_MS }).catch(() => run('umount', ['-l', this.folder]));
  }
}

/** Disks that somebody left behind who is not there any more. */
export async function sweepDisks(room: string): Promise<void> {
  for (const folder of DISKS.map((name) => path.join(room, name))) {
    await run('fsfreeze', ['--unfreeze', folder], { timeout: STEP_MS }).catch(() => {});
    await run('umount', ['-l', folder], { timeout: STEP_MS }).catch(() => {});
  }
}
