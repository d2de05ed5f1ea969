import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { storePlan } from '../../src/producer/plan-store.ts';
import { packKey } from '../../src/shared/claim.ts';
import { encodeDocument, type Place, type PlanDocument } from '../../src/shared/plan/plan.ts';
import { PlanIndex } from '../../src/shared/plan/plan-index.ts';
import { openStoreAddress } from '../../src/shared/store/open.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { Documents } from '../../src/workers/documents.ts';

const documentOf = (id: string, filling: number): PlanDocument => ({
  task_id: id,
  env: 'text',
  seed: 1n,
  config: { inline: new Map() },
  prompt: { inline: id.repeat(filling) },
  metadata: null,
  verify: true,
  plays: [{ kind: 'actions', actions: { inline: [] } }],
});

/** A stored plan of documents of these sizes, and what was read of it. */
async function planOf({ onTestFinished }: TestContext, sizes: readonly number[]) {
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-documents-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const store = await openStoreAddress(folder);
  const groups = sizes.map((size, i) => ({
    taskId: `t${i}`,
    lane: 'light' as const,
    held: false,
    spare: null,
    document: encodeDocument(documentOf(`t${i}`, size)),
    objects: [],
  }));
  const plan = await PlanIndex.open(store, await storePlan(store, groups, 1));
  const reads: string[] = [];
  const counting = Object.create(store, {
    get: {
      value: (...args: Parameters<Store['get']>) => {
        reads.push(args[0]);
        return store.get(...args);
      },
    },
  }) as Store;
  const places = (await plan.entries(0, plan.length)).map((entry) => entry.place);
  return { folder, places, reads, documents: new Documents(counting) };
}

const idsOf = async (documents: Documents, places: readonly Place[]) =>
  (await Promise.all(places.map((place) => documents.read(place)))).map((d) => d.task_id);

describe('plan documents', () => {
  it('that lie side by side are read together, and each is the one that was asked for', async (context) => {
    const { documents, places, reads } = await planOf(
      context,
      Array.from({ length: 200 }, () => 3),
    );
    expect(await idsOf(documents, places)).toEqual(places.map((_, i) => `t${i}`));
    expect(reads.length).toBeLessThanOrEqual(2);
    expect(await idsOf(documents, places.slice(50, 60))).toEqual(places.slice(50, 60).map((_, i) => `t${50 + i}`));
    expect(reads.length).toBeLessThanOrEqual(2);
  });

  it('of any size are whole, wherever in their pack they begin and end', async (context) => {
    const sizes = [1, 30_000, 5, 20_000, 7, 70_000, 2, 9_000, 9_000, 9_000, 1];
    const { documents, places } = await planOf(context, sizes);
    expect(await idsOf(documents, [...places].reverse())).toEqual(sizes.map((_, i) => `t${sizes.length - 1 - i}`));
  });

  it('that are damaged or gone are refused, their neighbours are not, and the next look finds what was mended', async (context) => {
    const { folder, documents, places } = await planOf(context, [4, 4, 4]);
    const [first, second, third] = places as [Place, Place, Place];
    const file = path.join(folder, packKey(second.pack));
    const sound = readFileSync(file);
    const broken = Buffer.from(sound);
    broken[second.offset + 20] = (broken[second.offset + 20] as number) ^ 1;
    writeFileSync(file, broken);
    await expect(documents.read(second)).rejects.toThrow(/damaged/);
    expect(await idsOf(documents, [first])).toEqual(['t0']);
    writeFileSync(file, sound);
    expect(await idsOf(documents, [second])).toEqual(['t1']);
    rmSync(file);
    const later = new Documents(await openStoreAddress(folder));
    await expect(later.read(third)).rejects.toThrow(/is not there/);
    writeFileSync(file, sound);
    expect(await idsOf(later, [third])).toEqual(['t2']);
  });
});
