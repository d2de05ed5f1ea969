import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { objectKey, sha256 } from '../../../src/shared/claim.ts';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { collectGarbage } from '../../../src/shared/store/garbage.ts';
import { buildShard } from '../../../src/shared/store/shard.ts';
import { genesis, shardIndexKey, shardKey } from '../../../src/shared/store/shard-name.ts';
import { surveyShards } from '../../../src/shared/store/shard-survey.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { collectShard } from '../../../src/workers/collect/collector.ts';
import { finishRun } from '../../../src/workers/collect/finish.ts';
import { gate } from '../../support/gate.ts';
import { collectAll, FakeLedger, keysOf, makeRun, type RunFixture } from '../../support/run-fixture.ts';

const BOUNDS = { most: 3, least: 1, final: true };
class Killed extends Error {}

let dir: string;
let stores = 0;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-collect-'));
});
afterEach(() => rm(dir, { recursive: true }));

async function newRun(): Promise<{ store: Store; fixture: RunFixture }> {
  const store = await openFolderStore(path.join(dir, `store-${stores++}`));
  return { store, fixture: await makeRun(store, 'r') };
}

async function contents(store: Store): Promise<Map<string, string>> {
  const all = new Map<string, string>();
  for (const key of await keysOf(store)) all.set(key, (await store.get(key))?.toString('base64') ?? '');
  return all;
}

async function collectAndFinish(store: Store, fixture: RunFixture, ledger: FakeLedger): Promise<void> {
  await collectAll(store, fixture, ledger);
  await finishRun(store, { ...fixture.finished, link: ledger.link });
}

/** Dies at the n-th write: before it, or after it and before anybody hears of it. */
function dying(store: Store, ledger: FakeLedger, n: number, when: 'before' | 'after') {
  let left = n;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    left--;
    if (left === 0 && when === 'before') throw new Killed();
    const result = await work();
    if (left <= 0) throw new Killed();
    return result;
  };
  const dyingStore: Store = {
    address: store.address,
    put: (key, bytes) => step(() => store.put(key, bytes)),
    putNew: (key, bytes) => step(() => store.putNew(key, bytes)),
    unfinishedPuts: () => store.unfinishedPuts(),
    get: (key, range) => store.get(key, range),
    head: (key) => store.head(key),
    list: (prefix) => store.list(prefix),
    delete: (key) => step(() => store.delete(key)),
    probe: () => store.probe(),
    close: () => store.close(),
  };
  const dyingLedger = {
    fixShard: ledger.fixShard.bind(ledger),
    entries: ledger.entries.bind(ledger),
    commit: (shard: Parameters<FakeLedger['commit']>[0]) => step(() => ledger.commit(shard)),
  };
  return { dyingStore, dyingLedger };
}

describe('a collector', () => {
  it('makes shards that chain, with every group in one, and a run that verifies', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    await collectAndFinish(store, fixture, ledger);
    const survey = await surveyShards(store, 'r');
    expect(survey.shards.map((s) => [s.number, s.from, s.to])).toEqual([
      [0, 1, 3],
      [1, 4, 6],
      [2, 7, 7],
    ]);
    expect(survey.shards.flatMap((s) => s.groups)).toEqual([6, 5, 4, 3, 2, 1, 0]);
    expect(survey).toMatchObject({ incarnation: fixture.identity.incarnation, strays: [] });
    expect(survey.shards.at(-1)?.link).toBe(ledger.link);
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });

  it('killed at any write leaves what the next one completes to the very same bytes', async () => {
    const clean = await newRun();
    await collectAndFinish(clean.store, clean.fixture, new FakeLedger(clean.fixture.entries));
    const expected = await contents(clean.store);
    let kills = 0;
    for (const when of ['before', 'after'] as const) {
      for (let n = 1; ; n++) {
        const { store, fixture } = await newRun();
        const ledger = new FakeLedger(fixture.entries);
        const { dyingStore, dyingLedger } = dying(store, ledger, n, when);
        let died = false;
        try {
          await collectAll(dyingStore, fixture, dyingLedger);
          await finishRun(dyingStore, { ...fixture.finished, link: ledger.link });
        } catch (error) {
          if (!(error instanceof Killed)) throw error;
          died = true;
        }
        if (!died) break;
        kills++;
        await collectAndFinish(store, fixture, ledger);
        expect(await contents(store), `killed ${when} write ${n}`).toEqual(expected);
      }
    }
    // Three shards of pack, index, shard and commit, and the manifest.
    expect(kills).toBe(2 * 13);
  });

  it('is superseded by another that was faster, and leaves no trace of it', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    const slow = collectShard(
      store,
      { ...ledgerOf(ledger), commit: (s) => faster.then(() => ledger.commit(s)) },
      fixture.identity,
      BOUNDS,
    );
    const faster = collectShard(store, ledger, fixture.identity, BOUNDS);
    expect((await faster).kind).toBe('committed');
    expect((await slow).kind).toBe('superseded');
    await collectAndFinish(store, fixture, ledger);
    expect((await verifyRun(store, 'r')).ok).toBe(true);
  });

  it('takes a shard that another encoder put, and is not led astray by one that was superseded', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    const from = genesis('r', fixture.identity.incarnation);
    const built = await buildShard(fixture.identity, 0, from, fixture.entries);
    // The same records and index, as another version of zlib might have compressed them.
    const records = gzipSync(gunzipSync(built.shard.bytes), { level: 1 });
    const index = JSON.parse(gunzipSync(built.index.bytes).toString());
    index.shard = { ...index.shard, sha256: sha256(records), bytes: records.length };
    const indexBytes = gzipSync(JSON.stringify(index));
    for (const pack of built.packs) await store.put(pack.key, pack.bytes);
    await store.put(shardIndexKey('r', 0, sha256(records)), indexBytes);
    await store.put(shardKey('r', 0, sha256(records)), records);
    const taken = await collectShard(store, ledger, fixture.identity, { ...BOUNDS, most: 7 });
    expect(taken).toMatchObject({ kind: 'committed', shard: { sha256: sha256(records), from: 1, to: 7 } });
    // A slower collector puts its own after the commit.
    await store.put(built.index.key, built.index.bytes);
    await store.put(built.shard.key, built.shard.bytes);
    await finishRun(store, { ...fixture.finished, link: ledger.link });
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
    expect((await keysOf(store, 'runs/r/shards/')).length).toBe(2);
  });

  it('writes nothing over a shard of the store with other groups: the ledger has lost writes', async () => {
    const { store, fixture } = await newRun();
    await collectShard(store, new FakeLedger(fixture.entries), fixture.identity, { ...BOUNDS, most: 4 });
    const before = await contents(store);
    await expect(collectShard(store, new FakeLedger(fixture.entries), fixture.identity, BOUNDS)).rejects.toMatchObject({
      code: 'ledger_behind_store',
    });
    expect(await contents(store)).toEqual(before);
  });

  it('writes no shard whose object is gone or was changed, and names it', async () => {
    const { store, fixture } = await newRun();
    const big = fixture.entries
      .flatMap((e) => e.closed.members)
      .find((m) => m.status === 'completed' && m.trajectory.bytes > 5000);
    if (big?.status !== 'completed') throw new Error('the fixture has no large trajectory');
    const key = objectKey(big.trajectory.sha256);
    const bytes = (await store.get(key)) as Buffer;
    for (const damage of [
      () => store.delete(key),
      () => store.put(key, Buffer.concat([Buffer.from('x'), bytes.subarray(1)])),
    ]) {
      await damage();
      await expect(collectAll(store, fixture, new FakeLedger(fixture.entries), 7)).rejects.toMatchObject({
        code: 'collect_failed',
        message: expect.stringContaining(key),
      });
      expect(await keysOf(store, 'runs/')).toEqual([]);
    }
  });

  it('refuses entries that are not dense, or whose content is not what is claimed', async () => {
    const { fixture } = await newRun();
    const [first, second, third] = fixture.entries as [
      RunFixture['entries'][0],
      RunFixture['entries'][0],
      RunFixture['entries'][0],
    ];
    const from = genesis('r', fixture.identity.incarnation);
    await expect(buildShard(fixture.identity, 0, from, [first, third])).rejects.toMatchObject({
      code: 'ledger_entry_broken',
    });
    const blob = second.blobs[0] as { sha256: string; bytes: Buffer };
    const other = {
      ...second,
      blobs: [{ sha256: blob.sha256, bytes: Buffer.concat([blob.bytes, Buffer.from('x')]) }, ...second.blobs],
    };
    await expect(
      buildShard(fixture.identity, 0, from, [
        first,
        { ...other, blobs: [{ sha256: blob.sha256, bytes: (first.blobs[0] as { bytes: Buffer }).bytes }] },
      ]),
    ).rejects.toMatchObject({
      code: 'ledger_entry_broken',
    });
  });
});

describe('a store that does not keep its word', () => {
  const liar = (store: Store, lie: (key: string, bytes: Uint8Array) => Promise<void>, when: RegExp): Store =>
    Object.assign(Object.create(store) as Store, {
      put: (key: string, bytes: Uint8Array) => (when.test(key) ? lie(key, bytes) : store.put(key, bytes)),
      putNew: (key: string, bytes: Uint8Array) =>
        when.test(key) ? lie(key, bytes).then(() => true) : store.putNew(key, bytes),
    });

  it.each([
    ['a pack', /^objects\/packs/],
    ['an index', /index\.json\.gz$/],
    ['a shard', /jsonl\.gz$/],
    ['the manifest', /manifest\.json$/],
  ])('that takes %s and keeps nothing, or something else, gets no commit', async (_, when) => {
    const { store, fixture } = await newRun();
    const before = await keysOf(store);
    for (const lie of [
      async () => {},
      async (key: string, bytes: Uint8Array) => store.put(key, Buffer.concat([bytes, Buffer.from('x')])),
    ]) {
      const ledger = new FakeLedger(fixture.entries);
      await expect(collectAndFinish(liar(store, lie, when), fixture, ledger)).rejects.toMatchObject({
        code: expect.stringMatching(/store_lies|manifest_conflict/),
      });
      if (!when.test('manifest.json')) expect(ledger.shards).toBe(0);
      for (const key of await keysOf(store)) if (when.test(key) && !before.includes(key)) await store.delete(key);
    }
    // When it has mended its ways the run goes on, and is sound.
    await collectAndFinish(store, fixture, new FakeLedger(fixture.entries));
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });
});

describe('two farms on one store, with one run id', () => {
  const another = (fixture: RunFixture): RunFixture => {
    const identity = { ...fixture.identity, incarnation: 'f'.repeat(16) };
    return { ...fixture, identity, finished: { ...fixture.finished, identity } };
  };

  it('the second to write a shard is told', async () => {
    const { store, fixture } = await newRun();
    await collectShard(store, new FakeLedger(fixture.entries), fixture.identity, { most: 3, least: 1, final: true });
    const before = await keysOf(store);
    const second = another(fixture);
    await expect(collectAll(store, second, new FakeLedger(second.entries))).rejects.toMatchObject({
      code: 'run_of_another',
    });
    expect(await keysOf(store)).toEqual(before);
    await collectAndFinish(store, fixture, new FakeLedger(fixture.entries));
    expect((await verifyRun(store, 'r')).faults).toEqual([]);
  });

  it.each([
    ['pack', /^objects\/packs/, 0],
    ['index', /index\.json\.gz$/, 2],
    // The faster one takes the index for a stray.
    ['shard', /jsonl\.gz$/, 1],
  ])(
    'that began at once have one run between them, whichever is faster: the slower one is at its %s',
    async (_, when, left) => {
      const { store, fixture } = await newRun();
      const farms = [fixture, another(fixture)] as const;
      const ledgers = farms.map((farm) => new FakeLedger(farm.entries)) as [FakeLedger, FakeLedger];
      const [atPut, go] = [gate(), gate()];
      const slower = Object.assign(Object.create(store) as Store, {
        put: async (key: string, bytes: Uint8Array) => {
          if (when.test(key)) {
            atPut.open();
            await go.opened;
          }
          await store.put(key, bytes);
        },
      });
      const late = collectAll(slower, farms[1], ledgers[1]).catch((error: unknown) => error);
      // The slower one has looked, and found nobody.
      await atPut.opened;
      await collectAndFinish(store, farms[0], ledgers[0]);
      go.open();
      expect(await late).toMatchObject({ code: 'run_of_another' });
      expect(ledgers[1].shards).toBe(0);
      // What it had put by then is named for what it is, and goes.
      const { faults } = await verifyRun(store, 'r');
      const whose = `run of this id is ${farms[1].identity.incarnation}.* store gc`;
      expect(faults).toEqual(Array(left).fill(expect.stringMatching(whose)));
      const report = { unfinished: [], dry: false, onGarbage: () => {}, ageMs: -60_000 };
      expect(await collectGarbage(store, report)).toMatchObject({ leftByOthers: left, refused: null });
      expect((await verifyRun(store, 'r')).faults).toEqual([]);
    },
  );

  it('the second to finish is told, and the first one’s promise stands', async () => {
    const { store, fixture } = await newRun();
    await collectAndFinish(store, fixture, new FakeLedger(fixture.entries));
    const promise = await store.get('runs/r/manifest.json');
    await expect(finishRun(store, another(fixture).finished)).rejects.toMatchObject({ code: 'manifest_conflict' });
    expect(await store.get('runs/r/manifest.json')).toEqual(promise);
  });

  it('a promise given before Redis lost how the run ended is kept', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    await collectAll(store, fixture, ledger);
    await finishRun(store, { ...fixture.finished, state: 'cancelled', link: ledger.link });
    const promise = await store.get('runs/r/manifest.json');
    await finishRun(store, { ...fixture.finished, state: 'done', link: ledger.link });
    expect(await store.get('runs/r/manifest.json')).toEqual(promise);
  });
});

describe('finishing a run', () => {
  it('deletes strays, and only after the manifest is there', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    await collectAll(store, fixture, ledger);
    const [shard] = (await keysOf(store, 'runs/r/shards/')) as [string];
    const stray = shard.replace(/-[0-9a-f]{8}/, '-00000000');
    await store.put(stray, Buffer.from('a superseded shard'));
    const deleted: string[] = [];
    const watched = Object.assign(Object.create(store) as Store, {
      delete: async (key: string) => {
        expect(await store.head('runs/r/manifest.json')).not.toBeNull();
        deleted.push(key);
        await store.delete(key);
      },
    });
    expect((await surveyShards(store, 'r')).strays).toEqual([stray]);
    expect(await store.head(stray)).not.toBeNull();
    await finishRun(watched, { ...fixture.finished, link: ledger.link });
    expect(deleted).toEqual([stray]);
    expect((await verifyRun(store, 'r')).ok).toBe(true);
  });

  it('writes no manifest where a shard is gone, or the ledger knows another chain', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    await collectAll(store, fixture, ledger);
    await expect(finishRun(store, { ...fixture.finished, link: 'f'.repeat(64) })).rejects.toMatchObject({
      code: 'shards_incomplete',
    });
    const last = (await keysOf(store, 'runs/r/shards/')).at(-1) as string;
    await store.delete(last);
    await expect(finishRun(store, fixture.finished)).rejects.toMatchObject({ code: 'shards_incomplete' });
    expect(await store.head('runs/r/manifest.json')).toBeNull();
  });
});

describe('a survey', () => {
  it('adopts shards that the ledger never heard of, up to the first that is not sound', async () => {
    const { store, fixture } = await newRun();
    const ledger = new FakeLedger(fixture.entries);
    await collectAll(store, fixture, ledger);
    const full = await surveyShards(store, 'r');
    const third = (await keysOf(store, 'runs/r/shards/000001-')) as string[];
    for (const key of third) {
      const bytes = (await store.get(key)) as Buffer;
      const changed = Buffer.from(bytes);
      changed[20] = (changed[20] as number) ^ 1;
      await store.put(key, changed);
      const survey = await surveyShards(store, 'r');
      expect(survey.shards).toEqual(full.shards.slice(0, 1));
      expect(survey.strays.length).toBe(4);
      await store.put(key, bytes);
    }
    expect(await surveyShards(store, 'r', { namesOnly: true })).toEqual(full);
  });

  it('of a run without shards is empty', async () => {
    const { store } = await newRun();
    expect(await surveyShards(store, 'r')).toEqual({ incarnation: null, shards: [], strays: [] });
  });
});

function ledgerOf(ledger: FakeLedger) {
  return { fixShard: ledger.fixShard.bind(ledger), entries: ledger.entries.bind(ledger) };
}
