// A folder as the store: one file a key. A put is written beside everything else in `.tmp`, synced, renamed and
// its folder synced, so that a crash leaves all of an object or none. What a crash leaves in `.tmp` is never
// listed and is removed at the next opening once it is an hour old. Links inside the folder are not followed.
// Refuses keys that could leave the folder; a folder that cannot be written is exit 3 with its path.

import { randomBytes } from 'node:crypto';
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, link, lstat, mkdir, open, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { codeOf, missingError } from '../errors.ts';
import { compareCodePoints } from '../json/value.ts';
import { makeFolder } from '../make-folder.ts';
import { unreadable, unwritable } from './folder-fault.ts';
import type { ProbeReport, Store, StoredObject, UnfinishedPut } from './store.ts';
import { keySegments, TEMP_FOLDER } from './store-key.ts';

const TEMP_AGE_MS = 3_600_000;
const PUT_TRIES = 4;
const STAT_BATCH = 64;
/** What a read meets where there is simply no such object. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO', 'ENAMETOOLONG']);

/** Opens without writing: the folder is made by the first put (or `probe`), so that looking never creates anything. */
export async function openFolderStore(dir: string): Promise<Store> {
  const root = path.resolve(dir);
  const found = await stat(root).catch(() => null);
  if (found && !found.isDirectory())
    throw missingError(
      'store_unwritable',
      `the store ${root} is a file, not a folder`,
      'name a folder with FARM_STORE or `store`',
    );
  await sweepTemp(path.join(root, TEMP_FOLDER));
  return new FolderStore(root);
}

class FolderStore implements Store {
  readonly address: string;
  private readonly temp: string;
  /** Folders known to be there and synced into their parents. */
  private readonly known = new Set<string>();

  constructor(root: string) {
    this.address = root;
    this.temp = path.join(root, TEMP_FOLDER);
  }

  async put(key: string, bytes: Uint8Array): Promise<void> {
    await this.write(key, bytes, rename);
  }

  async putNew(key: string, bytes: Uint8Array): Promise<boolean> {
    // A link is refused where the name is taken; a rename is not.
    return await this.write(key, bytes, async (temp, target) => {
      await link(temp, target);
      await unlink(temp);
    });
  }

  /** False if `place` found the name taken. */
  private async write(
    key: string,
    bytes: Uint8Array,
    place: (temp: string, target: string) => Promise<void>,
  ): Promise<boolean> {
    const target = this.pathOf(key);
    for (let tries = 1; ; tries++) {
      try {
        await this.place(target, bytes, place);
        return true;
      } catch (error) {
        if (codeOf(error) === 'EEXIST' && (await this.isThere(target))) return false;
        // A delete elsewhere may have taken the empty folder away between making it and the rename.
        if (codeOf(error) !== 'ENOENT' || tries === PUT_TRIES) throw unwritable(target, error);
        this.known.clear();
      }
    }
  }

  async get(key: string, range?: { offset: number; length: number }): Promise<Buffer | null> {
    const target = this.pathOf(key);
    let file: FileHandle | undefined;
    try {
      file = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const found = await file.stat();
      if (!found.isFile()) return null;
      const from = Math.min(range?.offset ?? 0, found.size);
      return await readFrom(file, from, Math.min(range?.length ?? found.size, found.size - from));
    } catch (error) {
      if (ABSENT.has(codeOf(error))) return null;
      throw unreadable(target, error);
    } finally {
      await file?.close();
    }
  }

  async head(key: string): Promise<StoredObject | null> {
    const target = this.pathOf(key);
    try {
      const found = await lstat(target);
      return found.isFile() ? { bytes: found.size, writtenAt: found.mtimeMs } : null;
    } catch (error) {
      if (ABSENT.has(codeOf(error))) return null;
      throw unreadable(target, error);
    }
  }

  async *list(prefix: string): AsyncIterable<{ key: string } & StoredObject> {
    const cut = prefix.lastIndexOf('/') + 1;
    if (cut > 0) this.pathOf(prefix.slice(0, cut - 1));
    yield* this.walk(prefix.slice(0, cut), prefix);
  }

  async *emptyFolders(prefix: string): AsyncIterable<string> {
    this.pathOf(prefix.slice(0, -1));
    yield* this.walkEmpty(prefix);
  }

  async delete(key: string): Promise<void> {
    const target = this.pathOf(key);
    try {
      await unlink(target);
    } catch (error) {
      if (ABSENT.has(codeOf(error)) && codeOf(error) !== 'EISDIR') return;
      throw unwritable(target, error);
    }
    for (let dir = path.dirname(target); dir !== this.address; dir = path.dirname(dir)) {
      try {
        await rmdir(dir);
      } catch {
        return; // not empty: others live there
      }
      this.known.delete(dir);
    }
  }

  async *unfinishedPuts(): AsyncIterable<UnfinishedPut> {
    for (const entry of (await this.entriesOf(TEMP_FOLDER)) ?? []) {
      const file = path.join(this.temp, entry.name);
      const found = entry.isFile() ? await lookAt(file) : null;
      if (found)
        yield { name: `${TEMP_FOLDER}/${entry.name}`, begunAt: found.writtenAt, remove: () => removeFile(file) };
    }
  }

  async probe(): Promise<ProbeReport> {
    const key = `probe/${process.pid}-${randomBytes(8).toString('hex')}`;
    const bytes = randomBytes(64);
    await this.put(key, bytes);
    const conditionalPut = !(await this.putNew(key, bytes));
    const back = await this.get(key);
    await this.delete(key);
    if (!back?.equals(bytes))
      throw missingError(
        'store_unwritable',
        `the store ${this.address} does not give back what was written`,
        'use another disk',
      );
    return { conditionalPut, warnings: [] };
  }

  async close(): Promise<void> {}

  private async isThere(target: string): Promise<boolean> {
    return (await lstat(target).catch(() => null)) !== null;
  }

  private async place(
    target: string,
    bytes: Uint8Array,
    place: (temp: string, target: string) => Promise<void>,
  ): Promise<void> {
    const dir = path.dirname(target);
    await this.makeFolder(this.temp);
    await this.makeFolder(dir);
    const temp = path.join(this.temp, `${process.pid}-${randomBytes(8).toString('hex')}`);
    try {
      const file = await open(temp, 'wx');
      try {
        await file.writeFile(bytes);
        await file.datasync();
      } finally {
        await file.close();
      }
      await place(temp, target);
    } catch (error) {
      await unlink(temp).catch(() => {});
      throw error;
    }
    await syncFolder(dir);
  }

  private async makeFolder(dir: string): Promise<void> {
    if (this.known.has(dir)) return;
    if (dir === this.address) makeFolder(dir);
    else {
      await this.makeFolder(path.dirname(dir));
      try {
        await mkdir(dir);
      } catch (error) {
        if (codeOf(error) !== 'EEXIST') throw error;
        if (!(await lstat(dir)).isDirectory()) throw new Error('something that is not a folder stands in its place');
      }
      await syncFolder(path.dirname(dir));
    }
    this.known.add(dir);
  }

  private async *walk(folder: string, prefix: string): AsyncIterable<{ key: string } & StoredObject> {
    const entries = (await this.entriesOf(folder)) ?? [];
    // A folder sorts with its slash: that is the order of the keys themselves.
    const named = entries
      .map((e) => ({ key: folder + e.name + (e.isDirectory() ? '/' : ''), isFolder: e.isDirectory() }))
      .filter((e) => e.key !== `${TEMP_FOLDER}/`)
      .filter((e) => e.key.startsWith(prefix) || (e.isFolder && prefix.startsWith(e.key)))
      .sort((a, b) => compareCodePoints(a.key, b.key));
    for (let i = 0; i < named.length; i += STAT_BATCH) {
      const batch = named.slice(i, i + STAT_BATCH);
      const found = await Promise.all(batch.map((e) => (e.isFolder ? null : lookAt(path.join(this.address, e.key)))));
      for (const [j, e] of batch.entries()) {
        const object = found[j];
        if (e.isFolder) yield* this.walk(e.key, prefix);
        else if (object) yield { key: e.key, ...object };
      }
    }
  }

  private async *walkEmpty(folder: string): AsyncIterable<string> {
    const entries = await this.entriesOf(folder);
    if (entries?.length === 0) yield folder;
    for (const entry of entries ?? []) if (entry.isDirectory()) yield* this.walkEmpty(`${folder}${entry.name}/`);
  }

  /** Null if there is no such folder. */
  private async entriesOf(folder: string): Promise<Dirent[] | null> {
    const dir = path.join(this.address, folder);
    try {
      return await readdir(dir, { withFileTypes: true });
    } catch (error) {
      if (ABSENT.has(codeOf(error))) return null;
      throw unreadable(dir, error);
    }
  }

  private pathOf(key: string): string {
    return path.join(this.address, ...keySegments(key));
  }
}

async function readFrom(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled);
    if (bytesRead === 0) throw new Error(`it ended at byte ${offset + filled} of ${offset + length} while it was read`);
    filled += bytesRead;
  }
  return bytes;
}

async function syncFolder(dir: string): Promise<void> {
  const folder = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function sweepTemp(temp: string): Promise<void> {
  for (const name of await readdir(temp).catch(() => [])) {
    const file = path.join(temp, name);
    const found = await lstat(file).catch(() => null);
    if (found?.isFile() && Date.now() - found.mtimeMs > TEMP_AGE_MS) await unlink(file).catch(() => {});
  }
}

async function removeFile(file: string): Promise<void> {
  try {
    await unlink(file);
  } catch (error) {
    if (!ABSENT.has(codeOf(error))) throw unwritable(file, error);
  }
}

/** Null if it has gone since its folder was read. */
async function lookAt(file: string): Promise<StoredObject | null> {
  try {
    const { size, mtimeMs } = await lstat(file);
    return { bytes: size, writtenAt: mtimeMs };
  } catch (error) {
    if (ABSENT.has(codeOf(error))) return null;
    throw unreadable(file, error);
  }
}
