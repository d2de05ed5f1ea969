// Makes a folder and those above it. Not by mkdir's `recursive`: that says ENOENT of a read-only disk, and below a
// folder that takes no folders, such as /proc, it never comes back. Refuses a file that stands in the folder's place.

import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { codeOf } from './errors.ts';

/** `mode` is that of every folder that is made. Throws the system's error. */
export function makeFolder(dir: string, mode = 0o777): void {
  try {
    mkdirSync(dir, { mode });
    return;
  } catch (error) {
    if (isThere(dir, error)) return;
    if (codeOf(error) !== 'ENOENT' || path.dirname(dir) === dir) throw error;
  }
  makeFolder(path.dirname(dir), mode);
  try {
    mkdirSync(dir, { mode });
  } catch (error) {
    // Another may have been as fast as we.
    if (!isThere(dir, error)) throw error;
  }
}

function isThere(dir: string, error: unknown): boolean {
  return codeOf(error) === 'EEXIST' && statSync(dir, { throwIfNoEntry: false })?.isDirectory() === true;
}
