import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PlannedGroup, planGroups } from '../../src/producer/plan.ts';
import { storePlan } from '../../src/producer/plan-store.ts';
import { objectKey, packKey, sha256 } from '../../src/shared/claim.ts';
import { readConfig } from '../../src/shared/config.ts';
import type { Value } from '../../src/shared/json/value.ts';
import { decodeDocument, encodeDocument, type PlanDocument } from '../../src/shared/plan/plan.ts';
import { PlanIndex } from '../../src/shared/plan/plan-index.ts';
import { readDocument, readHeld } from '../../src/shared/plan/reader.ts';
import { printProblems } from '../../src/shared/spec/problem.ts';
import { readSpec } from '../../src/shared/spec/reader.ts';
import type { TaskSource } from '../../src/shared/spec/source.ts';
import type { ProbeReport, Store, StoredObject, UnfinishedPut } from '../../src/shared/store/store.ts';

/** A store in memory that counts, and can fail. */
class MemoryStore implements Store {
  readonly address = 'memory';
  readonly objects = new Map<string, Buffer>();
  puts = 0;
  flying = 0;
  most = 0;
  failing = false;
  writtenAt = Date.now();
  async put(key: string, bytes: Uint8Array): Promise<void> {
    this.puts++;
    this.most = Math.max(this.most, ++this.flying);
    await new Promise(setImmediate);
    this.flying--;
    if (this.failing) throw new Error('disk full');
    this.objects.set(key, Buffer.from(bytes));
  }
  async get(key: string, range?: { offset: number; length: number }): Promise<Buffer | null> {
    const bytes = this.objects.get(key);
    if (bytes === undefined) return null;
    return range === undefined ? bytes : bytes.subarray(range.offset, range.offset + range.length);
  }
  async putNew(): Promise<boolean> {
    throw new Error('a plan overwrites nothing that must not be overwritten');
  }
  async head(key: string): Promise<StoredObject | null> {
    const found = this.objects.get(key);
    return found === undefined ? null : { bytes: found.length, writtenAt: this.writtenAt };
  }
  async *list(): AsyncIterable<{ key: string } & StoredObject> {}
  async *unfinishedPuts(): AsyncIterable<UnfinishedPut> {}
  async delete(key: string): Promise<void> {
    this.objects.delete(key);
  }
  async probe(): Promise<ProbeReport> {
    return { conditionalPut: true, warnings: [] };
  }
  async close(): Promise<void> {}
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'farm-plan-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function plan(...given: Parameters<typeof read>): Promise<PlannedGroup[]> {
  const { spec, source } = await read(...given);
  return [...planGroups(spec, source)];
}

async function read(lines: string[], change: Record<string, unknown> = {}, tasks = ['a', 'b']) {
  const file = path.join(folder, 'spec.json');
  const spec = {
    name: 'p',
    seed: 5,
    group_size: 2,
    tasks: tasks.map((id) => ({ id, env: 'guess', config: { low: 1, high: 8, max_guesses: 4 } })),
    policy: { kind: 'completions', path: 'c.jsonl', cycle: true },
    ...change,
  };
  await writeFile(file, JSON.stringify(spec));
  await writeFile(path.join(folder, 'c.jsonl'), lines.join('\n'));
  const result = await readSpec(file, readConfig({}));
  if (!result.ok || result.kind !== 'run') throw new Error(result.ok ? 'no run' : printProblems(result.problems));
  return result;
}

const BIG = 'x'.repeat(20_000);
const LINES = [
  `{"task_id": "a", "action": ${JSON.stringify(BIG)}}`,
  `{"task_id": "a", "completion": "\\ud800 é"}`,
  `{"task_id": "b", "actions": [1, 1.0, {"10": null, "2": true}]}`,
];

describe('planning with refills', () => {
  const line = (task_id: string, n: number): string => JSON.stringify({ task_id, action: n });
  const many = (task_id: string, count: number): string[] => Array.from({ length: count }, (_, n) => line(task_id, n));
  const change = { groups: { refill_degenerate: 2 } };
  const played = ({ taskId, held, spare, document }: PlannedGroup) => {
    const plays = decodeDocument(document).plays.map((play) => play.kind === 'actions' && play.actions);
    return [taskId, held, spare, plays.map((held) => held && 'inline' in held && (held.inline as Value[])[0])];
  };

  it('holds whole groups of answers ready, each behind the one before it, as many as are asked for', async () => {
    const lines = [...many('a', 9), ...many('b', 3), ...many('c', 4)];
    expect((await plan(lines, change, ['a', 'b', 'c'])).map(played)).toEqual([
      ['a', false, 3, [0n, 1n]],
      ['b', false, null, [0n, 1n]],
      ['c', false, 4, [0n, 1n]],
      ['a', true, 5, [2n, 3n]],
      ['c', true, null, [2n, 3n]],
      ['a', true, null, [4n, 5n]],
    ]);
  });

  it('goes in each round only through the tasks that have more left over', async () => {
    const lines = [...many('a', 6), ...many('b', 3), ...many('c', 4)];
    const { spec, source } = await read(lines, { groups: { refill_degenerate: 5 } }, ['a', 'b', 'c']);
    const asked: (readonly number[] | undefined)[] = [];
    const watched: TaskSource = {
      ...source,
      tasks: (round, among) => {
        asked.push(among);
        return source.tasks(round, among);
      },
    };
    expect([...planGroups(spec, watched)].map((group) => group.taskId)).toEqual(['a', 'b', 'c', 'a', 'c', 'a']);
    expect(asked).toEqual([undefined, [0, 2], [0]]);
    expect([...source.tasks(1)].map((task) => task.id)).toEqual(['a', 'c']);
  });

  it('plays no line a second time to refill, also with cycle', async () => {
    const groups = await plan([...many('a', 1), ...many('b', 3)], change);
    expect(groups.map(played)).toEqual([
      ['a', false, null, [0n, 0n]],
      ['b', false, null, [0n, 1n]],
    ]);
  });

  it('gives the same groups, in a plan of the same bytes, as without where nothing is left over', async () => {
    const [store, lines] = [new MemoryStore(), many('a', 3).concat(many('b', 3))];
    const ref = await storePlan(store, await plan(lines), 2);
    expect(await storePlan(store, await plan(lines, change), 2)).toEqual(ref);
    expect(ref).not.toHaveProperty('spares');
  });

  it('lies in one index, the spares behind the groups', async () => {
    const store = new MemoryStore();
    const ref = await storePlan(store, await plan([...many('a', 4), ...many('b', 4)], change), 2);
    expect(ref).toMatchObject({ groups: 2, spares: 2 });
    const entries = await (await PlanIndex.open(store, ref)).entries(0, 9);
    expect(entries.map(({ taskId, spare }) => [taskId, spare])).toEqual([
      ['a', 2],
      ['b', 3],
      ['a', undefined],
      ['b', undefined],
    ]);
  });
});

describe('planning', () => {
  it('gives one document a group, with what is large as a claim', async () => {
    const groups = await plan(LINES);
    expect(groups.map((group) => [group.taskId, group.objects.length])).toEqual([
      ['a', 1],
      ['b', 0],
    ]);
    const [a, b] = groups.map((group) => decodeDocument(group.document)) as [PlanDocument, PlanDocument];
    const content = Buffer.from(JSON.stringify([BIG]));
    expect(a.plays).toEqual([
      {
        kind: 'actions',
        actions: { claim: { key: `sha256/${sha256(content)}`, sha256: sha256(content), bytes: content.length } },
      },
      { kind: 'completion', completion: { inline: '\ud800 é' } },
    ]);
    expect(a.seed).toBe(5n);
    const actions: Value = [
      1n,
      1,
      new Map<string, Value>([
        ['10', null],
        ['2', true],
      ]),
    ];
    expect(b.plays).toEqual([
      { kind: 'actions', actions: { inline: actions } },
      { kind: 'actions', actions: { inline: actions } },
    ]);
  });

  it('is the same every time', async () => {
    expect(await plan(LINES)).toEqual(await plan(LINES));
  });

  it('writes a script once, for all members of all groups', async () => {
    const groups = await plan([], { policy: { kind: 'scripted', actions: [BIG] } });
    expect(groups.map((group) => decodeDocument(group.document).plays.length)).toEqual([1, 1]);
    expect(groups[0]?.objects[0]?.content).toBe(groups[1]?.objects[0]?.content);
  });

  it('keeps a document small when a large group has middling actions', async () => {
    const lines = [`{"task_id": "a", "action": ${JSON.stringify('y'.repeat(8000))}}`];
    const [group] = await plan(lines, { group_size: 4096 }, ['a']);
    expect(group?.document.length).toBeLessThan(2_000_000);
    expect(group?.objects).toHaveLength(1);
  });

  it('encodes and decodes a document without loss, and refuses anything else', async () => {
    for (const group of await plan(LINES))
      expect(encodeDocument(decodeDocument(group.document))).toEqual(group.document);
    for (const text of ['{}', '[]', '{"task_id":"a","env":"e","seed":1.0}']) {
      expect(() => decodeDocument(Buffer.from(text))).toThrow(TypeError);
    }
  });
});

describe('a stored plan', () => {
  it('reads back as it was written, entry by entry', async () => {
    const store = new MemoryStore();
    const groups = await plan(LINES, {}, ['a', 'b']);
    const ref = await storePlan(store, groups, 2);
    expect(ref).toMatchObject({ groups: 2, groupSize: 2 });
    const entries = await (await PlanIndex.open(store, ref)).entries(0, 2);
    expect(entries.map((entry) => entry.taskId)).toEqual(['a', 'b']);
    for (const [i, entry] of entries.entries())
      expect(await readDocument(store, entry.place)).toEqual(decodeDocument((groups[i] as PlannedGroup).document));
    const first = await readDocument(store, (entries[0] as (typeof entries)[number]).place);
    const play = first.plays[0];
    expect(play?.kind === 'actions' && (await readHeld(store, play.actions))).toEqual([BIG]);
  });

  it('is not written a second time', async () => {
    const store = new MemoryStore();
    const first = await storePlan(store, await plan(LINES), 2);
    const before = store.puts;
    expect(await storePlan(store, await plan(LINES), 2)).toEqual(first);
    expect(store.puts).toBe(before);
  });

  it('lies in packs of bounded size, written a few at a time', async () => {
    const store = new MemoryStore();
    function* many(): Iterable<PlannedGroup> {
      for (let i = 0; i < 100; i++) {
        const content = Buffer.from(`"${i}"`);
        const claim = { key: `sha256/${sha256(content)}`, sha256: sha256(content), bytes: content.length };
        const objects = [{ claim, content }];
        yield {
          taskId: `t${i}`,
          lane: 'rollout',
          held: false,
          spare: null,
          document: Buffer.alloc(1_000_000, i),
          objects,
        };
      }
    }
    const ref = await storePlan(store, many(), 4);
    const packs = new Set((await (await PlanIndex.open(store, ref)).entries(0, 100)).map((entry) => entry.place.pack));
    expect(packs.size).toBe(13);
    for (const pack of packs) expect(store.objects.get(packKey(pack))?.length).toBeLessThanOrEqual(8 * 2 ** 20);
    expect(store.most).toBeLessThanOrEqual(8);
    expect(store.most).toBeGreaterThan(1);
  });

  it('fails with the first failure of the store, with nothing still writing', async () => {
    const store = new MemoryStore();
    store.failing = true;
    await expect(storePlan(store, await plan(LINES), 2)).rejects.toThrow('disk full');
    expect(store.flying).toBe(0);
  });

  it('that is gone or changed is an error that names the object', async () => {
    const store = new MemoryStore();
    const ref = await storePlan(store, await plan(LINES), 2);
    const [entry] = await (await PlanIndex.open(store, ref)).entries(0, 1);
    const pack = packKey(entry?.place.pack ?? '');
    const bytes = store.objects.get(pack) as Buffer;
    bytes[5] = (bytes[5] as number) ^ 1;
    await expect(readDocument(store, entry?.place as never)).rejects.toMatchObject({ code: 'object_damaged', exit: 3 });
    store.objects.delete(pack);
    await expect(readDocument(store, entry?.place as never)).rejects.toThrow(pack);
    store.objects.delete(objectKey(ref.index.sha256));
    await expect(PlanIndex.open(store, ref)).rejects.toMatchObject({ code: 'object_missing' });
  });
});
