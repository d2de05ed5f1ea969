// S3 as a store on two real servers: what every store must hold, large objects in parts through a way that fails, whole runs
// in a bucket that others write into, and clocks that are off.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  AbortMultipartUploadCommand,
  CreateMultipartUploadCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { clockLibrary, sweepClocks, WallClock } from '../../../src/bench/chaos/wall-clock.ts';
import { storeThroughput } from '../../../src/bench/store-throughput.ts';
import { objectKey, packKey, sha256 } from '../../../src/shared/claim.ts';
import { collectGarbage } from '../../../src/shared/store/garbage.ts';
import { openStoreAddress } from '../../../src/shared/store/open.ts';
import { runsInStore } from '../../../src/shared/store/run-claims.ts';
import { removeRun } from '../../../src/shared/store/run-removal.ts';
import { openS3Store } from '../../../src/shared/store/s3.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { ensureBuilt } from '../../support/built.ts';
import { finishedRun, keysOf } from '../../support/run-fixture.ts';
import type { Misdeed, Seen } from '../../support/s3-proxy.ts';
import { REGION, startMoto, startVersitygw, type TestS3, useKeys, type Versitygw } from '../../support/s3-server.ts';
import { answer, isPut, PART, PASSING, patient, SHORT, storeAt, wayOfEach } from '../../support/s3-way.ts';
import { storeContract } from './contract.ts';

let server: Versitygw;
let moto: TestS3;
beforeAll(async () => {
  [server, moto] = await Promise.all([startVersitygw(), startMoto()]);
});
afterAll(async () => {
  await Promise.all([server.close(), moto.close()]);
});

for (const [name, at] of [
  ['versitygw', () => server],
  ['moto', () => moto],
] as const)
  storeContract(name, async () => {
    const store = await storeAt(at());
    return {
      store,
      cleanUp: async () => {
        const again = await openS3Store(store.address, { endpoint: at().endpoint, region: REGION });
        for await (const { key } of again.list('')) await again.delete(key);
        await again.close();
      },
    };
  });

it('a second server without such a bucket says so too', async () => {
  const store = await openS3Store('s3://nobody-made-this/x', { endpoint: moto.endpoint, region: REGION });
  await expect(store.probe()).rejects.toMatchObject({ code: 'store_no_bucket', exit: 3 });
  await store.close();
});

describe('in parts through a way that fails', () => {
  const way = wayOfEach(() => server, { ...SHORT, stillMs: 30_000 });

  const bytes = Buffer.alloc(3 * PART + 17, 'farm');
  const uploads = async (): Promise<string[]> => {
    const names: string[] = [];
    for await (const { name } of way.there.unfinishedPuts()) names.push(name);
    return names;
  };

  it('what is larger than a part arrives whole', async () => {
    await way.store.put('large', bytes);
    expect((await way.there.get('large'))?.equals(bytes)).toBe(true);
    expect(
      (await way.there.get('large', { offset: PART - 3, length: 6 }))?.equals(bytes.subarray(PART - 3, PART + 3)),
    ).toBe(true);
    expect(way.proxy.seen.filter((s) => isPut(s) && s.query.includes('partNumber'))).toHaveLength(4);
    expect(await uploads()).toEqual([]);
  });

  // A yes for nothing is found when the parts are put together: below.
  it.each(PASSING.filter(([, misdeed]) => misdeed?.kind !== 'lie'))('a part passes over %s', async (_, misdeed) => {
    await way.store.close();
    way.store = await openS3Store(
      way.there.address,
      { endpoint: way.proxy.endpoint, region: REGION },
      { patience: patient(misdeed), partBytes: PART },
    );
    way.proxy.first(1, (seen) => isPut(seen) && seen.query.includes('partNumber=2'), misdeed);
    await way.store.put('large', bytes);
    expect((await way.there.get('large'))?.equals(bytes)).toBe(true);
    expect(await uploads()).toEqual([]);
  });

  it('a lost answer to the last word is no loss', async () => {
    way.proxy.first(1, (seen) => seen.method === 'POST' && seen.query.includes('uploadId'), { kind: 'lose_answer' });
    await way.store.put('large', bytes);
    expect((await way.there.get('large'))?.equals(bytes)).toBe(true);
  });

  it.each([
    [
      'a part that is denied',
      (seen: Seen) => isPut(seen) && seen.query.includes('partNumber=3'),
      answer(403, 'AccessDenied'),
    ],
    [
      'a part that was not kept',
      (seen: Seen) => isPut(seen) && seen.query.includes('partNumber=3'),
      { kind: 'lie' } as Misdeed,
    ],
    [
      'a last word that is not kept',
      (seen: Seen) => seen.method === 'POST' && seen.query.includes('uploadId'),
      { kind: 'lie' } as Misdeed,
    ],
  ])('after %s nothing is left, and it is said', async (_, fits, misdeed) => {
    way.proxy.misdeed = (seen) => (fits(seen) ? misdeed : null);
    await expect(way.store.put('large', bytes)).rejects.toMatchObject({
      exit: 3,
      code: expect.stringMatching(/^store_/),
    });
    expect(await uploads()).toEqual([]);
    expect(await keysOf(way.there)).toEqual([]);
  });

  it('an upload that somebody was killed in is listed, and can be removed', async () => {
    way.proxy.misdeed = (seen) =>
      seen.query.includes('partNumber=4') || seen.method === 'DELETE' ? answer(503, 'SlowDown') : null;
    await expect(way.store.put('large', bytes)).rejects.toMatchObject({ code: 'store_busy' });
    expect(await uploads()).toEqual([expect.stringContaining('large')]);
    for await (const put of way.there.unfinishedPuts()) {
      expect(Math.abs(put.begunAt - Date.now())).toBeLessThan(30_000);
      await put.remove();
      await put.remove();
    }
    expect(await uploads()).toEqual([]);
  });
});

describe('a clock that is off', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-clock-'));
  beforeAll(ensureBuilt);
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
    sweepClocks();
  });

  it.each([
    ['ten minutes ahead', 600, '10 min ahead'],
    ['ten minutes behind', -600, '10 min behind'],
    ['two hours ahead', 7_200, '120 min ahead'],
  ])('by %s is told, and requests are signed by the server’s', async (name, seconds, said) => {
    const library = clockLibrary();
    expect(library).not.toBeNull();
    const clock = new WallClock(library as string, folder, name.replaceAll(' ', '-'));
    clock.jump(seconds);
    const script = fileURLToPath(new URL('../../support/probe-store.mjs', import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, `s3://${server.bucket}/clock${seconds}`], {
      env: { PATH: process.env.PATH, ...server.env, ...clock.environment },
    });
    expect(JSON.parse(stdout)).toEqual({
      conditionalPut: true,
      warnings: [expect.stringContaining(said)],
      read: 'what time is it?',
    });
  });
});

describe('a bucket that others write into', { timeout: 600_000 }, () => {
  let store: Store;
  /** Writes past all that the farm would do. */
  let others: Store;
  let folder: string;
  beforeEach(async () => {
    store = await storeAt(server);
    others = await openS3Store(`s3://${server.bucket}`, { endpoint: server.endpoint, region: REGION });
    folder = store.address.slice(`s3://${server.bucket}/`.length);
    await finishedRun(store, 'r', { groups: 4 });
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });
  afterEach(() => Promise.all([store.close(), others.close()]));

  it('names what they add, change, cut or take away, and nothing that lies elsewhere', async () => {
    const client = new S3Client({ endpoint: server.endpoint, region: REGION, forcePathStyle: true });
    // As consoles make folders.
    for (const Key of [`${folder}/`, `${folder}/objects/`])
      await client.send(new PutObjectCommand({ Bucket: server.bucket, Key, Body: '' }));
    client.destroy();
    for (const key of ['README', `${folder}-other/x`, `${folder}/notes/x`, `${folder}/objects/ours`])
      await others.put(key, Buffer.from('x'));
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
    expect(await runsInStore(store)).toEqual(['r']);

    const keys = (await keysOf(store)).filter((key) => /^runs\/|^objects\/(packs|sha256\/..)\/.{64}$/.test(key));
    const [shard] = keys.filter((key) => key.endsWith('.jsonl.gz')) as [string];
    await others.put(`${folder}/${shard.replace(/-./, '-x')}`, Buffer.from('x'));
    await others.put(`${folder}/runs/r/theirs`, Buffer.from('x'));
    const added = (await verifyRun(store, 'r')).faults;
    expect(added).toHaveLength(2);
    for (const key of [shard.replace(/-./, '-x'), 'runs/r/theirs']) {
      expect(added.join()).toContain(key);
      await store.delete(key);
    }
    for (const [i, key] of keys.entries()) {
      const bytes = (await store.get(key)) as Buffer;
      const changed = Buffer.from(bytes);
      changed[Math.floor(bytes.length / 2)] = (bytes[Math.floor(bytes.length / 2)] as number) ^ 1;
      const other = [changed, bytes.subarray(0, -1), null][i % 3] ?? null;
      if (other === null) await others.delete(`${folder}/${key}`);
      else await others.put(`${folder}/${key}`, other);
      expect((await verifyRun(store, 'r')).faults.length, key).toBeGreaterThan(0);
      await store.put(key, bytes);
    }
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });

  it('gives back to garbage collection only what is the farm’s and nobody claims', async () => {
    const lone = [objectKey(sha256('lone')), packKey(sha256('lone'))];
    for (const key of lone) await store.put(key, Buffer.from('lone'));
    await others.put(`${folder}/objects/theirs`, Buffer.from('x'));
    const client = new S3Client({ endpoint: server.endpoint, region: REGION, forcePathStyle: true });
    for (const Key of [`${folder}/objects/half`, 'theirs/half'])
      await client.send(new CreateMultipartUploadCommand({ Bucket: server.bucket, Key }));
    const before = await keysOf(store);
    const found: string[] = [];
    const options = { unfinished: [], dry: false, onGarbage: ({ name }: { name: string }) => void found.push(name) };
    expect(await collectGarbage(store, options)).toMatchObject({ objects: 0, young: 2, foreign: 1, unfinishedPuts: 0 });
    // As if all of it were old.
    const report = await collectGarbage(store, { ...options, ageMs: -60_000 });
    expect(report).toMatchObject({ objects: 2, young: 0, foreign: 1, unfinishedPuts: 1, refused: null });
    expect(found.filter((name) => !name.includes('half')).sort()).toEqual([...lone].sort());
    expect(found.filter((name) => name.includes('half'))).toEqual([expect.stringContaining('objects/half')]);

    expect(await keysOf(store)).toEqual(before.filter((key) => !lone.includes(key)));
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
    const { Uploads: left } = await client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }));
    expect(left?.map(({ Key }) => Key)).toEqual(['theirs/half']);
    for (const { Key, UploadId } of left ?? [])
      await client.send(new AbortMultipartUploadCommand({ Bucket: server.bucket, Key, UploadId }));
    client.destroy();
  });

  it('loses a whole run by its removal, and nothing else', async () => {
    await others.put(`${folder}/objects/theirs`, Buffer.from('x'));
    await finishedRun(store, 'stays', { salt: 'stays' });
    const stays = await keysOf(store);
    await finishedRun(store, 'goes', { salt: 'goes' });
    expect(await removeRun(store, 'goes', { othersUnfinished: false })).toMatchObject({ kept: null });
    expect(await keysOf(store)).toEqual(stays);
  });
});

describe('the throughput beside the least that can be done', () => {
  afterEach(() => useKeys());

  it('is measured in turns, and leaves nothing', async () => {
    useKeys(server.env);
    const address = `s3://${server.bucket}/throughput`;
    const measured = await storeThroughput(address, { objects: 20, bytes: 4_096, width: 4, rounds: 2 });
    for (const arm of [measured.ours, measured.bare]) {
      expect(arm).toHaveLength(2);
      for (const rate of arm) expect(rate).toBeGreaterThan(0);
    }
    const store = await openStoreAddress(address);
    expect(await keysOf(store)).toEqual([]);
    await store.close();
  });
});
