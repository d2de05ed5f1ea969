// A wall clock of one process's own, that can jump (libfaketime); its steady clock stays as it is, as in a real step of NTP.
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
const LIBRARY = /^libfaketimeMT\.so/;
const FOLDERS = ['/usr/lib/x86_64-linux-gnu/faketime', '/usr/lib/aarch64-linux-gnu/faketime', '/usr/lib/faketime'];
/** Null where the library is not installed (infra/setup.sh tests). */
export function clockLibrary() {
    for (const folder of FOLDERS) {
        const file = existsSync(folder) ? readdirSync(folder).find((name) => LIBRARY.test(name)) : undefined;
        if (file !== undefined)
            return path.join(folder, file);
    }
    return null;
}
export class WallClock {
    /** For the process whose clock it is. */
    environment;
    file;
    constructor(library, folder, name) {
        this.file = path.join(folder, `clock-${name}`);
        this.jump(0);
        this.environment = {
            LD_PRELOAD: library,
            FAKETIME_TIMESTAMP_FILE: this.file,
            FAKETIME_CACHE_DURATION: '1',
            FAKETIME_DONT_FAKE_MONOTONIC: '1',
            FAKETIME_DONT_RESET: '1',
        };
    }
    /** Away from the true time; seen within a second. */
    jump(seconds) {
        writeFileSync(this.file, `${seconds < 0 ? '' : '+'}${seconds}\n`);
    }
}
/** The library leaves two files a process behind if that is killed. */
export function sweepClocks() {
    for (const name of existsSync('/dev/shm') ? readdirSync('/dev/shm') : []) {
        const pid = /^(?:sem\.)?faketime_(?:sem|shm)_(\d+)$/.exec(name)?.[1];
        if (pid !== undefined && !existsSync(`/proc/${pid}`))
            rmSync(path.join('/dev/shm', name), { force: true });
    }
}
