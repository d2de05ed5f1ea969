// The disk of a farm under fire really does what it is said to do: else its faults would be borne by nobody.

import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { Disk } from '../../src/bench/chaos/disk.ts';
import { openFolderStore } from '../../src/shared/store/folder.ts';

async function disk({ onTestFinished }: TestContext): Promise<Disk> {
  const room = mkdtempSync(path.join(tmpdir(), 'farm-test-disk-'));
  const made = await Disk.make(room);
  onTestFinished(async () => {
    await made.close();
    rmSync(room, { recursive: true, force: true });
  });
  expect(made.kind, 'this test needs root and a loop device').toBe('loop');
  return made;
}

describe('a disk that loses its power', () => {
  it('forgets what was written and not synced, and keeps what was; so a put of the store is there', async (context) => {
    const made = await disk(context);
    const store = await openFolderStore(made.store);
    await store.put('objects/a', Buffer.from('kept'));
    const synced = openSync(path.join(made.folder, 'synced'), 'w');
    writeSync(synced, 'kept');
    fsyncSync(synced);
    writeFileSync(path.join(made.folder, 'late'), 'lost');
    closeSync(synced);
    await made.losePower();
    expect(existsSync(path.join(made.folder, 'late'))).toBe(false);
    expect(readFileSync(path.join(made.folder, 'synced'), 'utf8')).toBe('kept');
    expect((await store.get('objects/a'))?.toString()).toBe('kept');
  });
});

describe('a disk that is full', () => {
  it('refuses a put with what is wrong, and takes it again when there is room', async (context) => {
    const made = await disk(context);
    const store = await openFolderStore(made.store);
    await store.put('objects/a', Buffer.alloc(64));
    made.fill();
    await expect(store.put('objects/b', Buffer.alloc(64 * 1024))).rejects.toMatchObject({
      code: 'store_unwritable',
      message: expect.stringContaining('the disk is full'),
    });
    made.empty();
    await store.put('objects/b', Buffer.alloc(64 * 1024));
    expect((await store.get('objects/b'))?.length).toBe(64 * 1024);
  });
});
