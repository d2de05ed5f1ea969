// What S3 servers and the way to them do, and a store that goes there through the proxy that does it.

import { beforeEach } from 'vitest';
import { openS3Store } from '../../src/shared/store/s3.ts';
import { PATIENCE, type Patience } from '../../src/shared/store/s3-patience.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { type Misdeed, S3Proxy, type Seen } from './s3-proxy.ts';
import { REGION, type TestS3 } from './s3-server.ts';

/** Short, so that giving up does not take the test's time. */
export const SHORT: Patience = { giveUpMs: 1_500, stillMs: 1_000, slowBytesPerMs: 4_096, restMs: 10, restMostMs: 50 };
/** For what is to succeed: only what is silent on purpose (`stillMs` of SHORT) may count as silent. */
export const patient = (misdeed: Misdeed = null): Patience => ({
  ...SHORT,
  giveUpMs: 60_000,
  stillMs: misdeed?.kind === 'hang' ? SHORT.stillMs : 30_000,
});
/** The least that S3 takes. */
export const PART = 5 * 1024 * 1024;

const PAGE = 40;

let prefixes = 0;
/** At a place of its own. */
export async function storeAt(at: TestS3, endpoint = at.endpoint, patience = PATIENCE): Promise<Store> {
  const address = `s3://${at.bucket}/test-${process.pid}-${++prefixes}/some/place`;
  return await openS3Store(address, { endpoint, region: REGION }, { patience, partBytes: PART, pageKeys: PAGE });
}

export interface Way {
  proxy: S3Proxy;
  store: Store;
  /** Past the proxy: what is really there. */
  there: Store;
  close(): Promise<void>;
}

export async function openWay(at: TestS3, patience = SHORT): Promise<Way> {
  const proxy = await S3Proxy.start(at.port);
  const store = await storeAt(at, proxy.endpoint, patience);
  const there = await openS3Store(store.address, { endpoint: at.endpoint, region: REGION });
  const close = async (): Promise<void> => {
    await Promise.all([store.close(), there.close()]);
    await proxy.close();
  };
  return { proxy, store, there, close };
}

/** One for each test of the block that calls this. */
export function wayOfEach(at: () => TestS3, patience = SHORT): Way {
  const way = {} as Way;
  beforeEach(async () => {
    Object.assign(way, await openWay(at(), patience));
    return () => way.close();
  });
  return way;
}

export const isPut = (seen: Seen): boolean => seen.method === 'PUT';
export const answer = (status: number, code: string): Misdeed => ({ kind: 'answer', status, code });

/** What may pass. */
export const PASSING: readonly (readonly [string, Misdeed])[] = [
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
