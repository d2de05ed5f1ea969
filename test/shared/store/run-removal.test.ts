import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { resultsFromStore } from '../../../src/shared/store/results.ts';
import { removeRun } from '../../../src/shared/store/run-removal.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { type KillMode, KillPoint } from '../../support/kill-point.ts';
import { collectAll, FakeLedger, finishedRun, keysOf, makeRun } from '../../support/run-fixture.ts';

let dir: string;
let store: Store;
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-removal-'));
  store = await openFolderStore(dir);
});
afterEach(() => rm(dir, { recursive: true }));

describe('removing a run', () => {
  it('takes everything with it that only it claims', async () => {
    await finishedRun(store, 'gone');
    const removal = await removeRun(store, 'gone', { othersUnfinished: false });
    expect(removal).toMatchObject({ files: 7, shared: 0, kept: null });
    expect(await keysOf(store)).toEqual([]);
  });

  it('leaves what another run claims too', async () => {
    await finishedRun(store, 'stays', { salt: 'same' });
    const before = await keysOf(store);
    await finishedRun(store, 'gone', { salt: 'same', groups: 9 });
    const removal = await removeRun(store, 'gone', { othersUnfinished: false });
    expect(removal.shared).toBeGreaterThan(3);
    expect(await keysOf(store)).toEqual(before);
    expect((await verifyRun(store, 'stays')).ok).toBe(true);
  });

  it('leaves objects alone while another run is unfinished, by the ledger or by the store', async () => {
    await finishedRun(store, 'gone', { salt: 'same' });
    const objects = await keysOf(store, 'objects/');
    const removal = await removeRun(store, 'gone', { othersUnfinished: true });
    expect(removal).toMatchObject({ files: 7, objects: 0, kept: 'another run is unfinished' });
    await finishedRun(store, 'gone', { salt: 'same' });
    const other = await makeRun(store, 'going-on', { salt: 'same' });
    await collectAll(store, other, new FakeLedger(other.entries));
    expect((await removeRun(store, 'gone', { othersUnfinished: false })).kept).toContain('going-on');
    expect(await keysOf(store, 'objects/')).toEqual(expect.arrayContaining(objects));
  });

  it('of an unfinished run takes its plan too, if the ledger names it', async () => {
    const { entries, finished, identity } = await makeRun(store, 'half');
    await collectAll(store, { entries, finished, identity }, new FakeLedger(entries));
    const { plan, inputs } = finished;
    await removeRun(store, 'half', { roots: { plan, inputs }, othersUnfinished: false });
    expect(await keysOf(store)).toEqual([]);
  });

  it.each<KillMode>(['done', 'lost'])('cut short at any delete is repeated, and leaves nothing: %s', async (mode) => {
    await finishedRun(store, 'stays', { salt: 'same', groups: 5 });
    const before = await keysOf(store);
    const removing = async (point: KillPoint): Promise<boolean> => {
      await finishedRun(store, 'gone', { salt: 'same', groups: 9 });
      const removal = removeRun(point.store(store), 'gone', { othersUnfinished: false }).then(() => false);
      const died = await Promise.race([removal, point.died.then(() => true)]);
      point.bury();
      await removal.catch(() => {});
      return died;
    };
    for (let at = 1; await removing(new KillPoint(at, mode)); at++) {
      await removeRun(store, 'gone', { othersUnfinished: false });
      expect(await keysOf(store), `cut short at delete ${at}`).toEqual(before);
    }
    expect(await keysOf(store)).toEqual(before);
    expect((await verifyRun(store, 'stays')).ok).toBe(true);
  });

  it('removes a broken run, and one that is not there', async () => {
    await finishedRun(store, 'gone');
    await store.put('runs/gone/manifest.json', Buffer.from('{'));
    await removeRun(store, 'gone', { othersUnfinished: false });
    await removeRun(store, 'gone', { othersUnfinished: false });
    expect(await keysOf(store, 'runs/')).toEqual([]);
  });
});

describe('results from the store', () => {
  async function read(run: string, after: number) {
    const found: { seq: number; line: string }[] = [];
    for await (const result of resultsFromStore(store, run, after)) found.push(result);
    return found;
  }

  it('are the same, with the same cursors, before and after the manifest, from any place on', async () => {
    const { entries, identity, finished } = await makeRun(store, 'r');
    await collectAll(store, { entries, finished, identity }, new FakeLedger(entries));
    const unfinished = await read('r', 0);
    await finishedRun(store, 'r');
    const all = await read('r', 0);
    expect(all).toEqual(unfinished);
    expect(all.map((r) => r.seq)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(JSON.parse(all[3]?.line ?? '')).toMatchObject({
      cursor: expect.stringMatching(new RegExp(`^${identity.incarnation}\\.[0-9a-f]{8}-4$`)),
      group: 3,
      task_id: 'task/3',
    });
    for (const after of [1, 3, 6, 7, 100]) expect(await read('r', after)).toEqual(all.slice(after));
  });

  it('end with an error that names a shard that was changed', async () => {
    await finishedRun(store, 'r');
    const [shard] = (await keysOf(store, 'runs/r/shards/000001')).filter((k) => k.endsWith('.jsonl.gz')) as [string];
    await store.put(shard, Buffer.from('x'));
    await expect(read('r', 0)).rejects.toMatchObject({ code: 'store_broken', message: expect.stringContaining(shard) });
    expect((await read('r', 6)).length).toBe(1);
  });
});
