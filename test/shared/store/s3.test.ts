// S3 as a store on two real servers, and before one of them a proxy that does what servers and networks do. What may pass
// is tried again, what cannot is named, and a put that returned is in the store.

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
import { FarmError } from '../../../src/shared/errors.ts';
import { collectGarbage } from '../../../src/shared/store/garbage.ts';
import { openStoreAddress } from '../../../src/shared/store/open.ts';
import { runsInStore } from '../../../src/shared/store/run-claims.ts';
import { removeRun } from '../../../src/shared/store/run-removal.ts';
import { openS3Store } from '../../../src/shared/store/s3.ts';
import { PATIENCE, type Patience } from '../../../src/shared/store/s3-patience.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { ensureBuilt } from '../../support/built.ts';
import { finishedRun } from '../../support/run-fixture.ts';
import { type Misdeed, S3Proxy, type Seen } from '../../support/s3-proxy.ts';
import {
  KEYS,
  REGION,
  startMoto,
  startVersitygw,
  type TestS3,
  useKeys,
  type Versitygw,
} from '../../support/s3-server.ts';
import { storeContract } from './contract.ts';

/** Short, so that giving up does not take the test's time. */
const SHORT: Patience = { giveUpMs: 1_500, stillMs: 1_000, slowBytesPerMs: 4_096, restMs: 10, restMostMs: 50 };
/** The least that S3 takes. */
const PART = 5 * 1024 * 1024;

const PAGE = 40;

let server: Versitygw;
let moto: TestS3;
beforeAll(async () => {
  [server, moto] = await Promise.all([startVersitygw(), startMoto()]);
}, 60_000);
afterAll(async () => {
  await Promise.all([server.close(), moto.close()]);
});

let prefixes = 0;
async function opened(at: TestS3, endpoint = at.endpoint, patience = PATIENCE): Promise<Store> {
  const address = `s3://${at.bucket}/test-${++prefixes}/some/place`;
  return await openS3Store(address, { endpoint, region: REGION }, { patience, partBytes: PART, pageKeys: PAGE });
}

for (const [name, at] of [
  ['versitygw', () => server],
  ['moto', () => moto],
] as const)
  storeContract(name, async () => {
    const store = await opened(at());
    return {
      store,
      cleanUp: async () => {
        const again = await openS3Store(store.address, { endpoint: at().endpoint, region: REGION });
        for await (const { key } of again.list('')) await again.delete(key);
        await again.close();
      },
    };
  });

async function keysOf(store: Store): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list('')) keys.push(key);
  return keys;
}

const isPut = (seen: Seen): boolean => seen.method === 'PUT';
const isGet = (seen: Seen): boolean => seen.method === 'GET' && !seen.query.includes('list-type');
const answer = (status: number, code: string): Misdeed => ({ kind: 'answer', status, code });

describe('through a way that fails', () => {
  let proxy: S3Proxy;
  let store: Store;
  /** Past the proxy: what is really there. */
  let there: Store;
  beforeEach(async () => {
    proxy = await S3Proxy.start(server.port);
    store = await opened(server, proxy.endpoint, SHORT);
    there = await openS3Store(store.address, { endpoint: server.endpoint, region: REGION });
  });
  afterEach(async () => {
    await Promise.all([store.close(), there.close()]);
    await proxy.close();
  });

  const passing: [string, Misdeed][] = [
    ['503 SlowDown', answer(503, 'SlowDown')],
    ['500 InternalError', answer(500, 'InternalError')],
    ['502 of a proxy', answer(502, 'BadGateway')],
    ['429', answer(429, 'TooManyRequests')],
    ['a timeout on the server', answer(400, 'RequestTimeout')],
    ['a clock that the server refuses', answer(403, 'RequestTimeTooSkewed')],
    ['a connection cut in the middle of the body', { kind: 'cut_request' }],
    ['a lost answer', { kind: 'lose_answer' }],
    ['silence', { kind: 'hang' }],
    ['a bit changed on the way there', { kind: 'flip_request' }],
    ['a yes for nothing', { kind: 'lie' }],
  ];
  it.each(passing)('a put passes over %s', async (_, misdeed) => {
    proxy.first(2, isPut, misdeed);
    const bytes = Buffer.alloc(200_000, 'abc');
    await store.put('k', bytes);
    expect((await there.get('k'))?.equals(bytes)).toBe(true);
    expect(proxy.seen.filter(isPut)).toHaveLength(3);
  });

  const reading: [string, Misdeed][] = [
    ['503 SlowDown', answer(503, 'SlowDown')],
    ['an answer cut in the middle', { kind: 'cut_answer' }],
    ['silence', { kind: 'hang' }],
    ['a bit changed on the way back', { kind: 'flip_answer' }],
  ];
  it.each(reading)('a read passes over %s', async (_, misdeed) => {
    const bytes = Buffer.alloc(200_000, 'abc');
    await store.put('k', bytes);
    proxy.first(2, isGet, misdeed);
    expect((await store.get('k'))?.equals(bytes)).toBe(true);
    expect(proxy.seen.filter(isGet)).toHaveLength(3);
  });

  it.each(passing)(
    'a put that meets %s again and again ends by its deadline, named, and nothing is there',
    async (_, misdeed) => {
      proxy.misdeed = (seen) => (isPut(seen) ? misdeed : null);
      const began = performance.now();
      const failed = await store.put('k', Buffer.from('x')).catch((error: unknown) => error);
      expect(performance.now() - began).toBeLessThan(SHORT.giveUpMs + 3 * SHORT.stillMs);
      // What the server did and could not say is there; it was not acknowledged.
      if (misdeed?.kind !== 'lose_answer') expect(await keysOf(there)).toEqual([]);
      expect(failed).toBeInstanceOf(FarmError);
      expect(failed).toMatchObject({ exit: 3, code: expect.stringMatching(/^store_/), hint: expect.any(String) });
      expect((failed as FarmError).message).toContain(store.address);
    },
  );

  const named: [string, number, string, string][] = [
    ['no bucket', 404, 'NoSuchBucket', 'store_no_bucket'],
    ['no rights', 403, 'AccessDenied', 'store_denied'],
    ['a wrong key', 403, 'InvalidAccessKeyId', 'store_credentials'],
    ['a wrong secret', 403, 'SignatureDoesNotMatch', 'store_credentials'],
    ['expired credentials', 400, 'ExpiredToken', 'store_credentials_expired'],
    ['another region', 400, 'AuthorizationHeaderMalformed', 'store_wrong_region'],
    ['another region, by a redirect', 301, 'PermanentRedirect', 'store_wrong_region'],
    ['a full store', 507, 'InsufficientStorage', 'store_full'],
    ['a server that is no S3', 405, 'MethodNotAllowed', 'store_refuses'],
  ];
  it.each(named)('%s is named at once by every call', async (_, status, code, expected) => {
    proxy.misdeed = () => answer(status, code);
    const calls: [string, () => Promise<unknown>][] = [
      ['put', () => store.put('k', Buffer.from('x'))],
      ['put in parts', () => store.put('k', Buffer.alloc(PART + 1))],
      ['putNew', () => store.putNew('k', Buffer.from('x'))],
      ['get', () => store.get('k')],
      ['head', () => store.head('k')],
      ['list', () => keysOf(store)],
      ['delete', () => store.delete('k')],
      ['probe', () => store.probe()],
    ];
    for (const [call, make] of calls) {
      // An answer to HEAD has no body: 404 there means that there is no such key.
      if (status === 404 && (call === 'head' || call === 'putNew')) continue;
      const failed = await make().then(
        () => null,
        (error: unknown) => error,
      );
      expect(failed, call).toMatchObject({ exit: 3, code: expected, message: expect.stringContaining(code) });
    }
    // Each call once, and a read where HEAD says nothing.
    expect(proxy.seen.length).toBeLessThan(14);
  });

  it('names the region that the server names', async () => {
    proxy.misdeed = () => ({
      kind: 'answer',
      status: 301,
      code: 'PermanentRedirect',
      headers: { 'x-amz-bucket-region': 'eu-west-1' },
    });
    await expect(store.probe()).rejects.toMatchObject({ hint: expect.stringContaining('eu-west-1') });
  });

  it('a server that knows no conditional put is found out, and still keeps what is there', async () => {
    proxy.misdeed = (seen) => (seen.headers['if-none-match'] ? answer(501, 'NotImplemented') : null);
    expect(await store.probe()).toMatchObject({ conditionalPut: false });
    expect(await store.putNew('k', Buffer.from('first'))).toBe(true);
    expect(await store.putNew('k', Buffer.from('second'))).toBe(false);
    expect((await there.get('k'))?.toString()).toBe('first');
  });

  it('a conditional put whose answer is lost is found to be there', async () => {
    proxy.first(1, isPut, { kind: 'lose_answer' });
    expect(await store.putNew('k', Buffer.from('first'))).toBe(false);
    expect((await there.get('k'))?.toString()).toBe('first');
  });

  describe('in parts', () => {
    const bytes = Buffer.alloc(3 * PART + 17, 'farm');
    const uploads = async (): Promise<string[]> => {
      const names: string[] = [];
      for await (const { name } of there.unfinishedPuts()) names.push(name);
      return names;
    };

    it('what is larger than a part arrives whole', async () => {
      await store.put('large', bytes);
      expect((await there.get('large'))?.equals(bytes)).toBe(true);
      expect(
        (await there.get('large', { offset: PART - 3, length: 6 }))?.equals(bytes.subarray(PART - 3, PART + 3)),
      ).toBe(true);
      expect(proxy.seen.filter((s) => isPut(s) && s.query.includes('partNumber'))).toHaveLength(4);
      expect(await uploads()).toEqual([]);
    });

    // A yes for nothing is found when the parts are put together: below.
    it.each(passing.filter(([, misdeed]) => misdeed?.kind !== 'lie'))('a part passes over %s', async (_, misdeed) => {
      proxy.first(1, (seen) => isPut(seen) && seen.query.includes('partNumber=2'), misdeed);
      await store.put('large', bytes);
      expect((await there.get('large'))?.equals(bytes)).toBe(true);
      expect(await uploads()).toEqual([]);
    });

    it('a lost answer to the last word is no loss', async () => {
      proxy.first(1, (seen) => seen.method === 'POST' && seen.query.includes('uploadId'), { kind: 'lose_answer' });
      await store.put('large', bytes);
      expect((await there.get('large'))?.equals(bytes)).toBe(true);
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
      proxy.misdeed = (seen) => (fits(seen) ? misdeed : null);
      await expect(store.put('large', bytes)).rejects.toMatchObject({
        exit: 3,
        code: expect.stringMatching(/^store_/),
      });
      expect(await uploads()).toEqual([]);
      expect(await keysOf(there)).toEqual([]);
    });

    it('an upload that somebody was killed in is listed, and can be removed', async () => {
      proxy.misdeed = (seen) =>
        seen.query.includes('partNumber=4') || seen.method === 'DELETE' ? answer(503, 'SlowDown') : null;
      await expect(store.put('large', bytes)).rejects.toMatchObject({ code: 'store_busy' });
      expect(await uploads()).toEqual([expect.stringContaining('large')]);
      for await (const put of there.unfinishedPuts()) {
        expect(Math.abs(put.begunAt - Date.now())).toBeLessThan(30_000);
        await put.remove();
        await put.remove();
      }
      expect(await uploads()).toEqual([]);
    });
  });
});

describe('a server that is really so', () => {
  const refusal = async (address: string, endpoint = server.endpoint, region = REGION): Promise<unknown> => {
    const store = await openS3Store(address, { endpoint, region }, { patience: SHORT });
    return await store.probe().then(
      () => null,
      (error: unknown) => error,
    );
  };
  afterEach(() => useKeys());

  it('has no such bucket', async () => {
    expect(await refusal('s3://nobody-made-this/x')).toMatchObject({ code: 'store_no_bucket', exit: 3 });
    expect(await refusal('s3://nobody-made-this/x', moto.endpoint)).toMatchObject({ code: 'store_no_bucket', exit: 3 });
  });

  it('knows the user, who has no rights', async () => {
    await server.addUser('stranger', 'stranger-secret');
    useKeys({ AWS_ACCESS_KEY_ID: 'stranger', AWS_SECRET_ACCESS_KEY: 'stranger-secret' });
    expect(await refusal(`s3://${server.bucket}/rights`)).toMatchObject({
      code: 'store_denied',
      hint: expect.stringContaining('s3:PutObject'),
    });
  });

  it('does not know the key, or not the secret', async () => {
    useKeys({ ...KEYS, AWS_ACCESS_KEY_ID: 'nobody' });
    expect(await refusal(`s3://${server.bucket}/key`)).toMatchObject({ code: 'store_credentials' });
    useKeys({ ...KEYS, AWS_SECRET_ACCESS_KEY: 'another' });
    expect(await refusal(`s3://${server.bucket}/secret`)).toMatchObject({ code: 'store_credentials' });
  });

  it('is asked without any credentials', async () => {
    for (const name of Object.keys(KEYS)) delete process.env[name];
    expect(await refusal(`s3://${server.bucket}/none`)).toMatchObject({
      code: 'store_credentials',
      hint: expect.stringContaining('AWS_ACCESS_KEY_ID'),
    });
  });

  it('lies in another region', async () => {
    expect(await refusal(`s3://${server.bucket}/region`, server.endpoint, 'eu-central-1')).toMatchObject({
      code: 'store_wrong_region',
      message: expect.stringContaining(REGION),
    });
  });

  it('is not there, or is no S3 server', async () => {
    expect(await refusal(`s3://${server.bucket}/away`, 'http://127.0.0.1:1')).toMatchObject({
      code: 'store_unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    expect(await refusal(`s3://${server.bucket}/tls`, server.endpoint.replace('http:', 'https:'))).toMatchObject({
      code: 'store_certificate',
    });
    expect(await refusal(`s3://${server.bucket}/nobody`, 'http://no-such-host.invalid')).toMatchObject({
      code: 'store_unreachable',
    });
  });
});

describe('a clock that is off', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-clock-'));
  beforeAll(ensureBuilt, 120_000);
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

describe('a bucket that others write into', () => {
  let store: Store;
  /** Writes past all that the farm would do. */
  let others: Store;
  let folder: string;
  beforeEach(async () => {
    store = await opened(server);
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

describe('an S3 address', () => {
  it('that nobody can mean is refused before anything is asked', async () => {
    for (const [address, why] of [
      ['s3://', 'bucket'],
      ['s3://UPPER/x', 'small letters'],
      ['s3://ab', '3 to 63'],
      ['s3://key:secret@bucket/x', 'credentials'],
      ['s3://bucket/a//b', 'prefix'],
      ['s3://bucket/../b', 'prefix'],
      ['s3://bucket/x?colour=red', 'colour'],
      ['s3://bucket/x?secret_access_key=1', 'credentials'],
      ['s3://bucket/x?sse=rot13', 'AES256'],
      ['s3://bucket/x?kms_key=abc', 'sse=aws:kms'],
      ['s3://bucket/x?region=a&region=b', 'twice'],
      ['s3://bucket/x?endpoint=ftp://y', 'http'],
      ['s3://bucket/x#y', 's3://bucket/prefix'],
    ] as const)
      await expect(openStoreAddress(address, { endpoint: null, region: null }), address).rejects.toMatchObject({
        exit: 2,
        message: expect.stringContaining(why),
      });
  });

  it('says endpoint, region, style and encryption by itself', async () => {
    const endpoint = encodeURIComponent(server.endpoint);
    const address = `s3://${server.bucket}/said?region=${REGION}&endpoint=${endpoint}&style=path&sse=AES256`;
    const store = await openStoreAddress(address, { endpoint: 'http://127.0.0.1:1', region: 'elsewhere' });
    expect(store.address).toBe(address);
    await store.probe();
    await store.close();
  });
});
