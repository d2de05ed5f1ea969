// A server that takes If-None-Match and does not heed it: nothing on the wire says so. It is found out by trying, and what
// it cannot keep apart the order of writes and looks does: no promise is given by two, and none that was given is lost.

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseManifest } from '../../../src/shared/store/manifest.ts';
import { openS3Store } from '../../../src/shared/store/s3.ts';
import { manifestKey } from '../../../src/shared/store/shard-name.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { collectShard } from '../../../src/workers/collect/collector.ts';
import { finishRun } from '../../../src/workers/collect/finish.ts';
import { TestFarm } from '../../support/farm.ts';
import { gate } from '../../support/gate.ts';
import { collectAll, FakeLedger, makeRun, type RunFixture } from '../../support/run-fixture.ts';
import { S3Proxy, type Seen } from '../../support/s3-proxy.ts';
import { REGION, startMoto, type TestS3 } from '../../support/s3-server.ts';

let server: TestS3;
let proxy: S3Proxy;
beforeAll(async () => {
  server = await startMoto();
  proxy = await S3Proxy.start(server.port);
});
afterAll(async () => {
  await proxy.close();
  await server.close();
});

let prefixes = 0;
let store: Store;
beforeEach(async () => {
  proxy.misdeed = (seen) => (isConditional(seen) ? { kind: 'forget_condition' } : null);
  const address = `s3://${server.bucket}/condition-${++prefixes}`;
  store = await openS3Store(address, { endpoint: proxy.endpoint, region: REGION });
});
afterEach(() => store.close());

const isConditional = (seen: Seen): boolean => seen.headers['if-none-match'] !== undefined;
const text = async (key: string): Promise<string | undefined> => (await store.get(key))?.toString();

/** Conditional puts wait until so many are there: all of them have looked before, and found nothing. */
function together(count: number): void {
  const all = gate();
  let come = 0;
  proxy.misdeed = (seen) => {
    if (!isConditional(seen)) return null;
    if (++come === count) all.open();
    return { kind: 'forget_condition', held: all.opened };
  };
}

describe('a server that silently overwrites', () => {
  it('is told from one that refuses, by the store and by doctor', async () => {
    expect(await store.probe()).toMatchObject({ conditionalPut: false });
    const farm = new TestFarm({
      ...server.env,
      S3_ENDPOINT: proxy.endpoint,
      FARM_STORE: store.address,
      DOCKER_HOST: 'tcp://127.0.0.1:1',
    });
    try {
      const { stdout } = await farm.run('doctor');
      expect(stdout).toMatch(/^ok +store .*NO conditional put: the ledger alone fences/m);
    } finally {
      await farm.close();
    }
    const sound = await openS3Store(store.address, { endpoint: server.endpoint, region: REGION });
    expect(await sound.probe()).toMatchObject({ conditionalPut: true });
    await sound.close();
  });

  it('keeps what is there from whoever comes later, and of those that come at once one whole text', async () => {
    expect(await store.putNew('k', Buffer.from('first'))).toBe(true);
    expect(await store.putNew('k', Buffer.from('second'))).toBe(false);
    expect(await text('k')).toBe('first');
    together(8);
    const texts = Array.from({ length: 8 }, (_, i) => `number ${i}`.repeat(i + 1));
    const taken = await Promise.all(texts.map((one) => store.putNew('race', Buffer.from(one))));
    const stands = (await text('race')) ?? '';
    expect(texts.filter((_, i) => taken[i])).toContain(stands);
    expect(await store.putNew('race', Buffer.from('late'))).toBe(false);
    expect(await text('race')).toBe(stands);
  });

  it('has one sound manifest of two collectors that know different ends of the run', async () => {
    const fixture = await makeRun(store, 'r');
    const ledger = new FakeLedger(fixture.entries);
    await collectAll(store, fixture, ledger);
    together(2);
    const ends = (['done', 'cancelled'] as const).map((state) =>
      finishRun(store, { ...fixture.finished, state, link: ledger.link }),
    );
    const [one, other] = await Promise.all(ends);
    expect(one).toEqual(other);
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
    const promise = await text(manifestKey('r'));
    for (const state of ['cancelled', 'done'] as const)
      await finishRun(store, { ...fixture.finished, state, link: ledger.link });
    expect(await text(manifestKey('r'))).toBe(promise);
    expect(parseManifest(Buffer.from(promise ?? ''))).toMatchObject({ manifest: { link: ledger.link } });
  });

  it('has one run of two farms that began it at once: the other has nothing acknowledged', async () => {
    const fixture = await makeRun(store, 'r');
    const identity = { ...fixture.identity, incarnation: 'f'.repeat(16) };
    const second: RunFixture = { ...fixture, identity, finished: { ...fixture.finished, identity } };
    const ledgers = [new FakeLedger(fixture.entries), new FakeLedger(fixture.entries)] as const;
    const [atPut, go] = [gate(), gate()];
    const isShard = ({ method, path }: Seen): boolean => method === 'PUT' && path.includes('/runs/r/shards/');
    let held = true;
    proxy.misdeed = (seen) => {
      if (!(held && isShard(seen))) return isConditional(seen) ? { kind: 'forget_condition' } : null;
      held = false;
      atPut.open();
      return { kind: 'forget_condition', held: go.opened };
    };
    const late = collectAll(store, second, ledgers[1]).catch((error: unknown) => error);
    // It has looked for others, and found none.
    await atPut.opened;
    await collectShard(store, ledgers[0], fixture.identity, { most: 3, least: 1, final: true });
    go.open();
    expect(await late).toMatchObject({ code: 'run_of_another' });
    expect(ledgers[1].shards).toBe(0);
    await collectAll(store, fixture, ledgers[0]);
    await finishRun(store, { ...fixture.finished, link: ledgers[0].link });
    const promise = await text(manifestKey('r'));
    await expect(finishRun(store, { ...second.finished, link: null })).rejects.toMatchObject({
      code: 'manifest_conflict',
    });
    expect(await text(manifestKey('r'))).toBe(promise);
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });
});
