import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { objectKey, packKey, sha256 } from '../../../src/shared/claim.ts';
import { leftByOthers } from '../../../src/shared/store/another-farm.ts';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { collectGarbage, GARBAGE_AGE_MS, type UnfinishedRun } from '../../../src/shared/store/garbage.ts';
import { KeyMarks } from '../../../src/shared/store/key-marks.ts';
import { buildShard } from '../../../src/shared/store/shard.ts';
import { genesis } from '../../../src/shared/store/shard-name.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { collectAll, FakeLedger, finishedRun, keysOf, makeRun } from '../../support/run-fixture.ts';

const DAY = 24 * 3_600_000;

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-garbage-'));
  store = await openFolderStore(dir);
});
afterEach(() => rm(dir, { recursive: true }));

async function age(keys: readonly string[], ms: number): Promise<void> {
  const then = (Date.now() - ms) / 1000;
  for (const key of keys) await utimes(path.join(dir, key), then, then);
}

async function gc(options: { unfinished?: UnfinishedRun[]; dry?: boolean } = {}) {
  const found: string[] = [];
  const report = await collectGarbage(store, {
    unfinished: [],
    dry: false,
    onGarbage: ({ name }) => void found.push(name),
    ...options,
  });
  return { ...report, found };
}

async function litter(): Promise<string[]> {
  const lone = [objectKey(sha256('lone')), packKey(sha256('pack')), 'probe/77-0123456789abcdef'];
  for (const key of lone) await store.put(key, Buffer.from(key));
  return lone;
}

describe('collecting garbage', () => {
  it('takes what nobody claims and is older than a week, and nothing else', async () => {
    await finishedRun(store, 'one');
    await finishedRun(store, 'two', { salt: 'one' });
    const claimed = await keysOf(store);
    const old = await litter();
    await age([...claimed, ...old], GARBAGE_AGE_MS + DAY);
    const young = [objectKey(sha256('young'))];
    for (const key of young) await store.put(key, Buffer.from('x'));
    const foreign = [
      'objects/README',
      'objects/sha256/zz/abc',
      'objects/sha256/00/'.concat('f'.repeat(64)),
      'other/thing',
    ];
    for (const key of foreign) await store.put(key, Buffer.from('x'));
    await age(foreign, GARBAGE_AGE_MS + DAY);

    const dry = await gc({ dry: true });
    expect(dry.found.sort()).toEqual([...old].sort());
    expect(await keysOf(store)).toEqual([...claimed, ...old, ...young, ...foreign].sort());

    const report = await gc();
    expect(report).toMatchObject({ objects: 3, young: 1, foreign: 3, refused: null, found: dry.found });
    expect(await keysOf(store)).toEqual([...claimed, ...young, ...foreign].sort());
    for (const run of ['one', 'two']) expect((await verifyRun(store, run)).faults).toEqual([]);
    expect(await gc()).toMatchObject({ objects: 0 });
  });

  it('takes what a removed run has left, a week later', async () => {
    await finishedRun(store, 'gone');
    for (const key of await keysOf(store, 'runs/')) await store.delete(key);
    expect(await gc()).toMatchObject({ objects: 0, young: expect.any(Number) });
    await age(await keysOf(store), GARBAGE_AGE_MS + 1_000);
    await gc();
    expect(await keysOf(store)).toEqual([]);
  });

  it('leaves what an unfinished run has put since it was opened, and what it rests on', async () => {
    const { entries, finished, identity } = await makeRun(store, 'going-on');
    await collectAll(store, { entries, finished, identity }, new FakeLedger(entries.slice(0, 3)));
    const all = await keysOf(store);
    const accepted = objectKey(sha256('accepted, and in no shard yet'));
    const before = objectKey(sha256('of before'));
    for (const key of [accepted, before]) await store.put(key, Buffer.from('x'));
    await age([...all, accepted], GARBAGE_AGE_MS + 10 * DAY);
    await age([before], GARBAGE_AGE_MS + 30 * DAY);
    const { plan, inputs } = finished;
    const roots = { plan, inputs };
    const run = { run: 'going-on', roots, openedAt: Date.now() - GARBAGE_AGE_MS - 11 * DAY };
    expect(await gc({ unfinished: [run] })).toMatchObject({ found: [before], refused: null });
    expect(await keysOf(store)).toEqual([...all, accepted].sort());
  });

  it.each([
    [
      'a run is unfinished that no ledger here knows',
      async () => {
        const fixture = await makeRun(store, 'other');
        await collectAll(store, fixture, new FakeLedger(fixture.entries));
        return {};
      },
    ],
    [
      'nobody knows when an unfinished run was opened',
      async () => {
        const {
          finished: { plan, inputs },
        } = await makeRun(store, 'other');
        return { unfinished: [{ run: 'other', roots: { plan, inputs }, openedAt: null }] };
      },
    ],
    [
      'a manifest is broken',
      async () => {
        await finishedRun(store, 'other');
        await store.put('runs/other/manifest.json', Buffer.from('{'));
        return {};
      },
    ],
    [
      'a plan cannot be read',
      async () => {
        const { finished } = await finishedRun(store, 'other');
        await store.delete(objectKey(finished.plan.index.sha256));
        return {};
      },
    ],
  ])('touches nothing, and says why, where %s', async (_, make) => {
    const options = await make();
    await litter();
    const before = await keysOf(store);
    await age(before, GARBAGE_AGE_MS + DAY);
    const report = await gc(options);
    expect(report.refused).toContain('other');
    expect(await keysOf(store)).toEqual(before);
  });

  it('leaves an object that is put again while it looks', async () => {
    const [lone] = (await litter()) as [string];
    await age([lone], GARBAGE_AGE_MS + DAY);
    const report = await collectGarbage(store, {
      unfinished: [],
      dry: false,
      onGarbage: () => {
        // At once, so that it is young before anything can be removed.
        const now = new Date();
        void utimes(path.join(dir, lone), now, now);
      },
    });
    expect(report.objects).toBe(1);
    expect(await store.head(lone)).not.toBeNull();
  });

  it('takes what another farm has left in a finished run, and nothing else that lies there', async () => {
    const { identity, entries } = await finishedRun(store, 'one');
    const before = await keysOf(store);
    const shards = async (incarnation: string, run = 'one', link = genesis(run, incarnation)) =>
      await buildShard({ ...identity, run, incarnation }, 0, link, entries);
    const another = await shards('f'.repeat(16));
    const lone = await shards('e'.repeat(16));
    const own = await shards(identity.incarnation, 'one', 'f'.repeat(64));
    const [moved, far] = [await shards('d'.repeat(16), 'other'), await shards('b'.repeat(16), 'other')];
    const alone = await shards('c'.repeat(16));
    const left = [another.shard, another.index, lone.index, alone.shard];
    // Of the run's own farm, and of another run.
    const others = [own.shard, own.index].map(({ key, bytes }) => ({ key, bytes }));
    for (const { key, bytes } of [moved.shard, moved.index, far.shard])
      others.push({ key: key.replace('runs/other/', 'runs/one/'), bytes });
    for (const { key, bytes } of [...left, ...others]) await store.put(key, bytes);
    expect(await gc()).toMatchObject({ leftByOthers: 0, refused: null });
    const keys = left.map(({ key }) => key);
    await age([...before, ...keys, ...others.map(({ key }) => key)], GARBAGE_AGE_MS + DAY);

    const opened = { run: 'two', roots: (await makeRun(store, 'two')).finished, openedAt: Date.now() - 30 * DAY };
    expect(await gc({ unfinished: [opened] })).toMatchObject({ leftByOthers: 0, found: [] });
    expect((await gc({ dry: true })).found.sort()).toEqual([...keys].sort());
    expect(await gc()).toMatchObject({ leftByOthers: 4 });
    const there = await keysOf(store, 'runs/one/');
    expect(there).toEqual([...before.filter((key) => key.startsWith('runs/')), ...others.map(({ key }) => key)].sort());
  });

  it('counts a shard that another farm has left once, with its index, however soon they are gone', async () => {
    const { identity, entries } = await finishedRun(store, 'one');
    const incarnation = 'f'.repeat(16);
    const another = await buildShard({ ...identity, incarnation }, 0, genesis('one', incarnation), entries);
    for (const { key, bytes } of [another.shard, another.index]) await store.put(key, bytes);
    const shown: string[][] = [];
    for await (const files of leftByOthers(store)) {
      shown.push(files.map(({ key }) => key));
      // The listing goes on between two removals.
      await store.delete(another.index.key);
    }
    expect(shown).toEqual([[another.shard.key, another.index.key]]);
  });

  it('leaves another farm’s shard while its own run may still go on there', async () => {
    const fixture = await makeRun(store, 'one');
    const built = await buildShard(fixture.identity, 0, genesis('one', fixture.identity.incarnation), fixture.entries);
    for (const { key, bytes } of [...built.packs, built.index, built.shard]) await store.put(key, bytes);
    const all = await keysOf(store);
    await age(all, GARBAGE_AGE_MS + DAY);
    const { plan, inputs } = fixture.finished;
    await gc({ unfinished: [{ run: 'one', roots: { plan, inputs }, openedAt: Date.now() }] });
    expect(await keysOf(store)).toEqual(all);
  });

  it('takes puts that were cut short', async () => {
    await store.put('a', Buffer.from('x'));
    const half = path.join(dir, '.tmp/half');
    await writeFile(half, 'half');
    expect(await gc()).toMatchObject({ unfinishedPuts: 0 });
    await age(['.tmp/half'], GARBAGE_AGE_MS + DAY);
    expect(await gc()).toMatchObject({ unfinishedPuts: 1 });
    const names: string[] = [];
    for await (const { name } of store.unfinishedPuts()) names.push(name);
    expect(names).toEqual([]);
  });

  it('takes no foreign file below runs/ for a run', async () => {
    for (const key of ['runs/README', 'runs/notes/today.txt', 'runs/bad name/manifest.json'])
      await store.put(key, Buffer.from('x'));
    const old = await litter();
    await age(old, GARBAGE_AGE_MS + DAY);
    expect(await gc()).toMatchObject({ objects: 3, refused: null });
  });
});

describe('marks of keys', () => {
  it('hold every one of many, and hardly any other', () => {
    const marks = new KeyMarks();
    const hashes = Array.from({ length: 50_000 }, (_, i) => sha256(`key ${i}`));
    for (const hash of [...hashes, '0'.repeat(64)]) marks.add(hash);
    expect(hashes.every((hash) => marks.has(hash))).toBe(true);
    expect(marks.has('0'.repeat(64))).toBe(true);
    expect(Array.from({ length: 50_000 }, (_, i) => sha256(`other ${i}`)).filter((hash) => marks.has(hash))).toEqual(
      [],
    );
  });
});
