// The disk under the store: a small file system of its own, that can be full, refuse writes, or stand still. As root on a
// loop device (ext4) or in memory; where neither can be had, faults of the disk are left out, and said to be.
import { execFile } from 'node:child_process';
import { closeSync, ftruncateSync, mkdirSync, openSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
const run = promisify(execFile);
const BYTES = 256 * 1024 * 1024;
const STEP_MS = 15_000;
export class Disk {
    /** Where it is mounted, or a plain folder. */
    folder;
    kind;
    ballast;
    frozen = false;
    constructor(folder, kind) {
        this.folder = folder;
        this.kind = kind;
        this.ballast = path.join(folder, 'ballast');
    }
    static async make(room) {
        const folder = path.join(room, 'disk');
        mkdirSync(folder);
        if (process.getuid?.() !== 0)
            return new Disk(folder, 'none');
        try {
            const image = path.join(room, 'disk.img');
            const file = openSync(image, 'w');
            ftruncateSync(file, BYTES);
            closeSync(file);
            await run('mkfs.ext4', ['-q', '-m', '0', image], { timeout: STEP_MS });
            await run('mount', ['-o', 'loop', image, folder], { timeout: STEP_MS });
            return new Disk(folder, 'loop');
        }
        catch {
            // no loop devices here
        }
        try {
            await run('mount', ['-t', 'tmpfs', '-o', `size=${BYTES}`, 'farm-chaos', folder], { timeout: STEP_MS });
            return new Disk(folder, 'memory');
        }
        catch {
            return new Disk(folder, 'none');
        }
    }
    get store() {
        return path.join(this.folder, 'store');
    }
    /** Takes all that is free, but for less than a block. */
    fill() {
        for (let size = BYTES; size >= 4_096; size /= 2) {
            try {
                const free = statfsSync(this.folder);
                const bytes = Math.min(size, free.bavail * free.bsize);
                if (bytes > 0)
                    writeFileSync(this.ballast, Buffer.alloc(bytes), { flag: 'a' });
            }
            catch {
                // full: a smaller piece may still fit
            }
        }
    }
    empty() {
        rmSync(this.ballast, { force: true });
    }
    async refuseWrites(refuse) {
        // A remount waits for no writer: it is refused while one has a file open, and asked for again.
        for (let tries = 0;; tries++) {
            try {
                await run('mount', ['-o', `remount,${refuse ? 'ro' : 'rw'}`, this.folder], { timeout: STEP_MS });
                return;
            }
            catch (error) {
                if (tries === 50)
                    throw error;
                await new Promise((resolve) => setTimeout(resolve, 20));
            }
        }
    }
    /** Every write waits until it thaws. */
    async freeze(freeze) {
        if (freeze === this.frozen)
            return;
        await run('fsfreeze', [freeze ? '--freeze' : '--unfreeze', this.folder], { timeout: STEP_MS });
        this.frozen = freeze;
    }
    async close() {
        if (this.kind === 'none')
            return;
        await this.freeze(false).catch(() => { });
        // A process that is on its way out may hold it a moment longer.
        await run('umount', [this.folder], { timeout: STEP_MS }).catch(() => run('umount', ['-l', this.folder]));
    }
}
/** A disk that somebody left behind who is not there any more. */
export async function sweepDisk(room) {
    const folder = path.join(room, 'disk');
    await run('fsfreeze', ['--unfreeze', folder], { timeout: STEP_MS }).catch(() => { });
    await run('umount', ['-l', folder], { timeout: STEP_MS }).catch(() => { });
}
