// What a farm under fire has for an S3 server's moods, before a real server: each is met by the store as its own failure,
// and passes with the mood.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { S3Front, type S3State } from '../../src/bench/chaos/s3-front.ts';
import { keysOf } from '../support/run-fixture.ts';
import { startVersitygw, type Versitygw } from '../support/s3-server.ts';
import { SHORT, storeAt } from '../support/s3-way.ts';

let server: Versitygw;
beforeAll(async () => {
  server = await startVersitygw();
}, 60_000);
afterAll(() => server.close());

const states: S3State[] = [
  { kind: 'answer', status: 503, code: 'SlowDown' },
  { kind: 'slow', ms: 200 },
  { kind: 'silent' },
  { kind: 'cut' },
  { kind: 'deaf' },
  { kind: 'lie' },
];
it.each(states)('a put has its end while it is %o, and is there when it was acknowledged', async (state) => {
  const front = await S3Front.open(server.port);
  const store = await storeAt(server, front.endpoint, SHORT);
  try {
    front.set(state);
    const put = await store.put('k', Buffer.from('x')).then(
      () => 'there',
      (error: { code: string }) => error.code,
    );
    expect(put).toMatch(state.kind === 'slow' || state.kind === 'lie' ? /^there$/ : /^store_/);
    front.set({ kind: 'good' });
    if (put !== 'there') await store.put('k', Buffer.from('x'));
    expect(await keysOf(store)).toEqual(['k']);
  } finally {
    await store.close();
    await front.close();
  }
});
