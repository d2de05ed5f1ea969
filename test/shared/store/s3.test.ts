// S3 as a store on a real server, and before it a proxy that does what servers and networks do. What may pass is tried
// again, what cannot is named, and a put that returned is in the store. What every store must hold, large objects and whole
// runs are in s3.slow.test.ts.

import { afterAll, afterEach, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { FarmError } from '../../../src/shared/errors.ts';
import { openStoreAddress } from '../../../src/shared/store/open.ts';
import { openS3Store } from '../../../src/shared/store/s3.ts';
import { keysOf } from '../../support/run-fixture.ts';
import type { Misdeed, Seen } from '../../support/s3-proxy.ts';
import { KEYS, REGION, startVersitygw, useKeys, type Versitygw } from '../../support/s3-server.ts';
import { answer, isPut, openWay, PART, PASSING, patient, SHORT, type Way, wayOfEach } from '../../support/s3-way.ts';

let server: Versitygw;
beforeAll(async () => {
  server = await startVersitygw();
}, 150_000);
afterAll(() => server.close());

const isGet = (seen: Seen): boolean => seen.method === 'GET' && !seen.query.includes('list-type');

// Each waits for its own clocks, and for nobody else's.
describe.concurrent('through a way that fails for a while', () => {
  const way = async ({ onTestFinished }: TestContext, patience = SHORT): Promise<Way> => {
    const opened = await openWay(server, patience);
    onTestFinished(opened.close);
    return opened;
  };

  /** Where silence is short, a slow machine may seem silent once more. */
  const expectThird = (misdeed: Misdeed, seen: Seen[]): void => {
    if (misdeed?.kind === 'hang') expect(seen.length).toBeGreaterThanOrEqual(3);
    else expect(seen).toHaveLength(3);
  };

  it.for(PASSING)('a put passes over %s', async ([, misdeed], context) => {
    const { proxy, store, there } = await way(context, patient(misdeed));
    proxy.first(2, isPut, misdeed);
    const bytes = Buffer.alloc(200_000, 'abc');
    await store.put('k', bytes);
    expect((await there.get('k'))?.equals(bytes)).toBe(true);
    expectThird(misdeed, proxy.seen.filter(isPut));
  });

  const reading: [string, Misdeed][] = [
    ['503 SlowDown', answer(503, 'SlowDown')],
    ['an answer cut in the middle', { kind: 'cut_answer' }],
    ['silence', { kind: 'hang' }],
    ['a bit changed on the way back', { kind: 'flip_answer' }],
  ];
  it.for(reading)('a read passes over %s', async ([, misdeed], context) => {
    const { proxy, store } = await way(context, patient(misdeed));
    const bytes = Buffer.alloc(200_000, 'abc');
    await store.put('k', bytes);
    proxy.first(2, isGet, misdeed);
    expect((await store.get('k'))?.equals(bytes)).toBe(true);
    expectThird(misdeed, proxy.seen.filter(isGet));
  });

  it.for(PASSING)(
    'a put that meets %s again and again ends by its deadline, named, and nothing is there',
    async ([, misdeed], context) => {
      const { proxy, store, there } = await way(context);
      proxy.misdeed = (seen) => (isPut(seen) ? misdeed : null);
      const began = performance.now();
      const failed = await store.put('k', Buffer.from('x')).catch((error: unknown) => error);
      expect(performance.now() - began).toBeLessThan(SHORT.giveUpMs + 30_000);
      // What the server did and could not say is there; it was not acknowledged.
      if (misdeed?.kind !== 'lose_answer') expect(await keysOf(there)).toEqual([]);
      expect(failed).toBeInstanceOf(FarmError);
      expect(failed).toMatchObject({ exit: 3, code: expect.stringMatching(/^store_/), hint: expect.any(String) });
      expect((failed as FarmError).message).toContain(store.address);
    },
  );
});

describe('through a way that fails', () => {
  const way = wayOfEach(() => server, patient());

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
    way.proxy.misdeed = () => answer(status, code);
    const calls: [string, () => Promise<unknown>][] = [
      ['put', () => way.store.put('k', Buffer.from('x'))],
      ['put in parts', () => way.store.put('k', Buffer.alloc(PART + 1))],
      ['putNew', () => way.store.putNew('k', Buffer.from('x'))],
      ['get', () => way.store.get('k')],
      ['head', () => way.store.head('k')],
      ['list', () => keysOf(way.store)],
      ['delete', () => way.store.delete('k')],
      ['probe', () => way.store.probe()],
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
    expect(way.proxy.seen.length).toBeLessThan(14);
  });

  it('names the region that the server names', async () => {
    way.proxy.misdeed = () => ({
      kind: 'answer',
      status: 301,
      code: 'PermanentRedirect',
      headers: { 'x-amz-bucket-region': 'eu-west-1' },
    });
    await expect(way.store.probe()).rejects.toMatchObject({ hint: expect.stringContaining('eu-west-1') });
  });

  it('a server that knows no conditional put is found out, and still keeps what is there', async () => {
    way.proxy.misdeed = (seen) => (seen.headers['if-none-match'] ? answer(501, 'NotImplemented') : null);
    expect(await way.store.probe()).toMatchObject({ conditionalPut: false });
    expect(await way.store.putNew('k', Buffer.from('first'))).toBe(true);
    expect(await way.store.putNew('k', Buffer.from('second'))).toBe(false);
    expect((await way.there.get('k'))?.toString()).toBe('first');
  });

  it('a conditional put whose answer is lost is found to be there', async () => {
    way.proxy.first(1, isPut, { kind: 'lose_answer' });
    expect(await way.store.putNew('k', Buffer.from('first'))).toBe(false);
    expect((await way.there.get('k'))?.toString()).toBe('first');
  });
});

describe('a server that is really so', () => {
  const refusal = async (address: string, endpoint = server.endpoint, region = REGION): Promise<unknown> => {
    const store = await openS3Store(
      address,
      { endpoint, region },
      {
        patience: { ...SHORT, stillMs: 30_000 },
      },
    );
    return await store.probe().then(
      () => null,
      (error: unknown) => error,
    );
  };
  afterEach(() => useKeys());

  it('has no such bucket', async () => {
    expect(await refusal('s3://nobody-made-this/x')).toMatchObject({ code: 'store_no_bucket', exit: 3 });
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
