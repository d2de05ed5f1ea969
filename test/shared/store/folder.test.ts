import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { openStoreAddress, splitRunAddress } from '../../../src/shared/store/open.ts';
import { storeContract } from './contract.ts';

storeContract('a folder', async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'farm-store-contract-'));
  return {
    store: await openFolderStore(path.join(dir, 'made/by/the/first/put')),
    cleanUp: () => rm(dir, { recursive: true }),
  };
});

describe('a folder store', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'farm-store-'));
  });
  afterEach(async () => {
    await rm(dir, { recursive: true });
  });

  it('makes nothing until something is put', async () => {
    const store = await openFolderStore(path.join(dir, 'store'));
    expect(await store.get('a')).toBeNull();
    await expect(stat(path.join(dir, 'store'))).rejects.toThrow();
  });

  it('does not list what a crashed put left, and removes it after an hour', async () => {
    await (await openFolderStore(dir)).put('a', Buffer.from('x'));
    const [young, old] = [path.join(dir, '.tmp/young'), path.join(dir, '.tmp/old')];
    for (const file of [young, old]) await writeFile(file, 'half');
    const twoHoursAgo = Date.now() / 1000 - 7200;
    await utimes(old, twoHoursAgo, twoHoursAgo);
    const store = await openFolderStore(dir);
    const keys: string[] = [];
    for await (const { key } of store.list('')) keys.push(key);
    expect(keys).toEqual(['a']);
    expect(await readdir(path.join(dir, '.tmp'))).toEqual(['young']);
  });

  it('does not follow a link, and lists it as something that is there', async () => {
    await writeFile(path.join(dir, 'outside'), 'secret');
    const store = await openFolderStore(path.join(dir, 'store'));
    await store.put('a/b', Buffer.from('x'));
    await symlink(path.join(dir, 'outside'), path.join(dir, 'store/a/link'));
    expect(await store.get('a/link')).toBeNull();
    const keys: string[] = [];
    for await (const { key } of store.list('a/')) keys.push(key);
    expect(keys).toEqual(['a/b', 'a/link']);
    await store.put('a/link', Buffer.from('new'));
    expect(await readFile(path.join(dir, 'outside'), 'utf8')).toBe('secret');
  });

  it('knows its empty folders, and those alone', async () => {
    const store = await openFolderStore(dir);
    await store.put('a/b/c', Buffer.from('x'));
    await mkdir(path.join(dir, 'a/empty/emptier'), { recursive: true });
    await mkdir(path.join(dir, 'b'));
    const folders: string[] = [];
    for await (const folder of store.emptyFolders?.('a/') ?? []) folders.push(folder);
    expect(folders).toEqual(['a/empty/emptier/']);
    for await (const folder of store.emptyFolders?.('nothing/') ?? []) folders.push(folder);
    expect(folders).toHaveLength(1);
  });

  it('says exit 3 and which path where it cannot write', async () => {
    await writeFile(path.join(dir, 'file'), 'x');
    await expect(openFolderStore(path.join(dir, 'file'))).rejects.toMatchObject({ code: 'store_unwritable', exit: 3 });
    const store = await openFolderStore(path.join(dir, 'file/store'));
    await expect(store.probe()).rejects.toMatchObject({
      code: 'store_unwritable',
      exit: 3,
      message: expect.stringContaining(path.join(dir, 'file/store')),
    });
    const fine = await openFolderStore(dir);
    await expect(fine.put('file/x', Buffer.from('x'))).rejects.toMatchObject({ code: 'store_unwritable', exit: 3 });
    expect(await readdir(path.join(dir, '.tmp'))).toEqual([]);
  });
});

describe('an address', () => {
  let dir: string;
  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'farm-address-'));
  });
  afterEach(async () => {
    await rm(dir, { recursive: true });
  });

  it('opens a folder by its path, S3 by its address, and refuses what it does not know', async () => {
    expect((await openStoreAddress(dir)).address).toBe(dir);
    const s3 = await openStoreAddress('s3://bucket/x/', { endpoint: null, region: null });
    expect(s3.address).toBe('s3://bucket/x');
    await s3.close();
    await expect(openStoreAddress('ftp://x')).rejects.toMatchObject({ exit: 2 });
  });

  it('of a run is split into store and id', async () => {
    await (await openFolderStore(dir)).put('runs/my-run.1/manifest.json', Buffer.from('x'));
    expect(splitRunAddress(`${dir}/runs/my-run.1/`)).toEqual({ root: dir, run: 'my-run.1' });
    expect(splitRunAddress('s3://bucket/a/b/runs/r')).toEqual({ root: 's3://bucket/a/b', run: 'r' });
    expect(splitRunAddress('s3://bucket/a/runs/r/?region=x')).toEqual({ root: 's3://bucket/a?region=x', run: 'r' });
    expect(splitRunAddress('s3://bucket/runs/r')).toEqual({ root: 's3://bucket', run: 'r' });
    for (const odd of [`${dir}/runs/other`, dir, `${dir}/runs/my-run.1/manifest.json`, 's3://bucket/r'])
      expect(() => splitRunAddress(odd)).toThrow(expect.objectContaining({ exit: 2 }));
  });
});
