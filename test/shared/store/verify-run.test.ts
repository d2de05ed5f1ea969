import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf, sha256 } from '../../../src/shared/claim.ts';
import { gzipSteady } from '../../../src/shared/store/content.ts';
import { openFolderStore } from '../../../src/shared/store/folder.ts';
import { buildManifest, type Manifest, parseManifest } from '../../../src/shared/store/manifest.ts';
import type { LedgerEntry } from '../../../src/shared/store/shard.ts';
import { genesis, nextLink } from '../../../src/shared/store/shard-name.ts';
import type { Store } from '../../../src/shared/store/store.ts';
import { verifyRun } from '../../../src/shared/store/verify-run.ts';
import { finishRun } from '../../../src/workers/collect/finish.ts';
import { collectAll, FakeLedger, finishedRun, keysOf, makeRun, type RunFixture } from '../../support/run-fixture.ts';

let dir: string;
let original: Store;
/** For runs beside it. */
let others: Store;
let fixture: RunFixture;
let copies = 0;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'farm-verify-'));
  original = await openFolderStore(path.join(dir, 'store'));
  others = await openFolderStore(path.join(dir, 'others'));
  fixture = await finishedRun(original, 'sound');
});
afterAll(() => rm(dir, { recursive: true }));

/** The faults that verify-run names after `change` was done to a copy. */
async function faultsAfter(change: (store: Store) => Promise<void>): Promise<string[]> {
  const copy = path.join(dir, `copy-${copies++}`);
  await cp(path.join(dir, 'store'), copy, { recursive: true });
  const store = await openFolderStore(copy);
  await change(store);
  const check = await verifyRun(store, 'sound');
  await rm(copy, { recursive: true });
  expect(check.ok).toBe(check.faults.length === 0);
  return check.faults;
}

async function bytesOf(store: Store, key: string): Promise<Buffer> {
  return (await store.get(key)) as Buffer;
}

async function shardKeys(store: Store): Promise<string[]> {
  return (await keysOf(store, 'runs/sound/shards/')).filter((key) => key.endsWith('.jsonl.gz'));
}

describe('verify-run', () => {
  it('finds a sound run sound, and counts it from its records', async () => {
    const check = await verifyRun(original, 'sound');
    expect(check).toMatchObject({ ok: true, faults: [], groups: 7, members: 21, completed: 19, noResult: 2 });
  });

  it('finds a run of one lone member sound', async () => {
    await finishedRun(original, 'lone', { groups: 1, size: 1 });
    expect(await verifyRun(original, 'lone')).toMatchObject({ ok: true, groups: 1, members: 1 });
  });

  it('finds a run sound in which a group refills a degenerate one', async () => {
    await finishedRun(others, 'refilled', { refilled: true });
    expect(await verifyRun(others, 'refilled')).toMatchObject({ ok: true, faults: [], groups: 7, members: 21 });
  });

  it.each([
    ['that was not refilled', true, 'group 0 is refilled by none, and what it holds and its plan call for 6', null],
    [
      'that names another group than its plan',
      false,
      'group 0 is refilled by 5, and what it holds and its plan call for 6',
      'refill none that is degenerate: 6',
    ],
  ])('names a degenerate group %s', async (name, absent, fault, second) => {
    const run = sha256(name).slice(0, 8);
    const { entries, identity, finished } = await makeRun(others, run, { refilled: true });
    // The group that refills stands first: it may be left out as if it had never been called for.
    const told = (absent ? entries.slice(1) : entries).map(({ closed, blobs }, i): LedgerEntry => {
      const { spare, ...rest } = closed;
      const other = spare === undefined || absent ? rest : { ...rest, spare: 5 };
      return { seq: i + 1, closed: { ...other, seq: i + 1 }, blobs };
    });
    await collectAll(others, { entries: told, identity, finished }, new FakeLedger(told));
    await finishRun(others, finished);
    const faults = (await verifyRun(others, run)).faults.join('\n');
    expect(faults).toContain(fault);
    if (second !== null) expect(faults).toContain(second);
  });

  it('says that a run without a manifest is not finished', async () => {
    await makeRun(original, 'unfinished');
    const { ok, faults } = await verifyRun(original, 'unfinished');
    expect(ok).toBe(false);
    expect(faults).toEqual(['manifest.json is not there: the run is not finished']);
  });

  it('names every file of the run, and every object that it claims, that has a bit flipped, is cut, longer, empty or gone', async () => {
    const keys = (await keysOf(original)).filter((key) => key.startsWith('runs/sound/') || key.startsWith('objects/'));
    // Other runs' objects are none of this run's business.
    const others = await openFolderStore(path.join(dir, 'others'));
    await finishedRun(others, 'lone', { groups: 1, size: 1 });
    await makeRun(others, 'unfinished');
    const foreign = new Set(await keysOf(others));
    const own = keys.filter((key) => !foreign.has(key));
    expect(own.length).toBeGreaterThan(14);
    const plants: [string, (bytes: Buffer) => Buffer | null][] = [
      ['flipped', (b) => flip(b, b.length >> 1)],
      ['first bit', (b) => flip(b, 0)],
      ['last bit', (b) => flip(b, b.length - 1)],
      ['cut', (b) => b.subarray(0, -1)],
      ['longer', (b) => Buffer.concat([b, Buffer.from('\n')])],
      ['empty', () => Buffer.alloc(0)],
      ['gone', () => null],
    ];
    for (const key of own)
      for (const [name, plant] of plants) {
        const bytes = await bytesOf(original, key);
        const changed = plant(bytes);
        if (changed) await original.put(key, changed);
        else await original.delete(key);
        const { ok, faults } = await verifyRun(original, 'sound');
        await original.put(key, bytes);
        expect(ok, `${key} ${name}`).toBe(false);
        expect(faults.join('\n'), `${key} ${name}`).toContain(path.basename(key));
      }
    expect((await verifyRun(original, 'sound')).ok).toBe(true);
  });

  it('names what is in the folder and does not belong there', async () => {
    const [shard] = (await shardKeys(original)) as [string];
    const doubled = shard.replace('.jsonl.gz', '0.jsonl.gz');
    const extras = [doubled, shard.replace('/000000-', '/000009-'), 'runs/sound/notes.txt', 'runs/sound/shards/.x.tmp'];
    for (const extra of extras) {
      const faults = await faultsAfter(async (store) => store.put(extra, await bytesOf(store, shard)));
      expect(faults).toEqual([expect.stringContaining(extra)]);
    }
  });

  it('names empty folders in it', async () => {
    const faults = await faultsAfter(async (store) => {
      await mkdir(path.join(store.address, 'runs/sound/shards/old/older'), { recursive: true });
    });
    expect(faults).toEqual([expect.stringContaining('runs/sound/shards/old/older/: is an empty folder')]);
  });

  it('does not care for objects that no run claims, nor for other runs', async () => {
    const faults = await faultsAfter(async (store) => {
      await store.put('objects/sha256/ab/stray', Buffer.from('x'));
      await store.put('runs/sound2/shards/x', Buffer.from('x'));
    });
    expect(faults).toEqual([]);
  });

  it('names two shards that were swapped', async () => {
    const faults = await faultsAfter(async (store) => {
      const [a, b] = (await shardKeys(store)) as [string, string];
      const [first, second] = [await bytesOf(store, a), await bytesOf(store, b)];
      await store.put(a, second);
      await store.put(b, first);
    });
    for (const key of await shardKeys(original))
      if (!key.includes('/000002-')) expect(faults.join('\n')).toContain(key);
  });

  it('refuses a manifest in any other form than its own, even with the right content', async () => {
    const faults = await faultsAfter(async (store) => {
      const text = (await bytesOf(store, 'runs/sound/manifest.json')).toString();
      await store.put('runs/sound/manifest.json', Buffer.from(JSON.stringify(JSON.parse(text))));
    });
    expect(faults).toEqual([expect.stringContaining('manifest.json')]);
  });
});

// Whoever forges a record can make all hashes fit again; the account itself must then not hold.
describe('verify-run of a run whose hashes were all made to fit', () => {
  async function forge(change: (records: string[]) => string[], counts = (m: Manifest) => m.counts): Promise<string[]> {
    return faultsAfter(async (store) => {
      const parsed = parseManifest(await bytesOf(store, 'runs/sound/manifest.json'));
      if ('fault' in parsed) throw new Error(parsed.fault);
      const { manifest } = parsed;
      let link = genesis('sound', manifest.incarnation);
      for (const [n, entry] of manifest.shards.entries()) {
        const stem = `runs/sound/shards/00000${n}-`;
        const old = `${stem}${entry.sha256}`;
        const index = JSON.parse(gunzipSync(await bytesOf(store, `${old}.index.json.gz`)).toString());
        let raw = gunzipSync(await bytesOf(store, `${old}.jsonl.gz`)).toString();
        if (n === 0) raw = `${change(raw.trimEnd().split('\n')).join('\n')}\n`;
        const bytes = await gzipSteady(Buffer.from(raw));
        const digest = sha256(bytes);
        index.previous = link;
        index.shard = { sha256: digest, bytes: bytes.length, raw_bytes: Buffer.byteLength(raw) };
        const indexBytes = await gzipSteady(Buffer.from(`${JSON.stringify(index)}\n`));
        await store.delete(`${old}.jsonl.gz`);
        await store.delete(`${old}.index.json.gz`);
        await store.put(`${stem}${digest}.jsonl.gz`, bytes);
        await store.put(`${stem}${digest}.index.json.gz`, indexBytes);
        Object.assign(entry, {
          sha256: digest,
          bytes: bytes.length,
          index_bytes: indexBytes.length,
          index_sha256: sha256(indexBytes),
        });
        link = nextLink(link, digest, entry.index_sha256);
      }
      await store.put('runs/sound/manifest.json', buildManifest({ ...manifest, link, counts: counts(manifest) }));
    });
  }
  const onFirst = (change: (record: ReturnType<typeof JSON.parse>) => void) => (lines: string[]) =>
    lines.map((line, i) => {
      if (i > 0) return line;
      const record = JSON.parse(line);
      change(record);
      return JSON.stringify(record);
    });

  const rewarded = (member: ReturnType<typeof JSON.parse>, reward: number) => {
    Object.assign(member, { reward, components: { env: reward } });
    member.certificate.reward = reward;
  };
  /** The first member of the second record, which a verifier graded. */
  const onVerified = (change: (member: ReturnType<typeof JSON.parse>) => void) => (lines: string[]) =>
    lines.map((line, i) => {
      const record = JSON.parse(line);
      if (i === 1) change(record.members[0]);
      return JSON.stringify(record);
    });

  it('is sound where nothing was changed', async () => {
    expect(await forge((lines) => lines)).toEqual([]);
  });

  it.each<[string, (lines: string[]) => string[], string]>([
    ['a reward', onFirst((r) => Object.assign(r.members[0], { reward: 0.5 })), 'certificate says'],
    ['an advantage', onFirst((r) => Object.assign(r.members[0], { advantage: 9 })), 'figures'],
    ['a mean', onFirst((r) => Object.assign(r, { mean: 0.123 })), 'figures'],
    ['a group that is there already', onFirst((r) => Object.assign(r, { group: 5 })), 'a second time'],
    ['a group that was never planned', onFirst((r) => Object.assign(r, { group: 70 })), 'never planned'],
    ['a task', onFirst((r) => Object.assign(r, { task_id: 'another' })), 'another was planned'],
    ['a member left out', onFirst((r) => r.members.pop()), 'members where'],
    [
      'a reward, with its component and certificate',
      onFirst((r) => rewarded(r.members[0], 0.5)),
      "trajectory's total is 1, its component env 0.5",
    ],
    ['a component', onFirst((r) => Object.assign(r.members[0].components, { env: 99 })), 'its component env 99'],
    ['components that nobody gave', onFirst((r) => Object.assign(r.members[0].components, { bonus: 0 })), 'bonus'],
    ['no components', onFirst((r) => Object.assign(r.members[0], { components: {} })), 'env is missing'],
    ['the part of a verifier', onVerified((m) => Object.assign(m.components, { certified: 0 })), 'components give'],
    ['the parts of a verifier left out', onVerified((m) => delete m.components.graded), 'not those of a verifier'],
    [
      'a verdict',
      onVerified((m) => {
        Object.assign(m.components, { certified: 0, format: 6 });
        Object.assign(m, { reward: m.components.env + 0.475 });
      }),
      'its report says true',
    ],
    ['seconds', onFirst((r) => Object.assign(r.members[0], { seconds: -5 })), 'took -5 seconds'],
    ['attempts', onFirst((r) => Object.assign(r.members[0], { attempts: 900 })), '900 attempts'],
    ['steps', onFirst((r) => Object.assign(r.members[0], { steps: 3 })), 'has 3 steps, its trajectory 2'],
    ['no steps', onFirst((r) => Object.assign(r.members[0], { steps: 0 })), 'has 0 steps'],
    ['more steps than the spec has', onFirst((r) => Object.assign(r.members[0], { steps: 6 })), '1 to 5'],
    [
      'the environment',
      onFirst((r) => Object.assign(r.members[0].certificate, { env: 'terminal' })),
      "not its trajectory's environment",
    ],
    [
      'trajectories of two tasks swapped',
      (lines) => {
        const records = lines.map((line) => JSON.parse(line));
        const [a, b] = [records[0].members[0], records[1].members[0]];
        [a.trajectory, b.trajectory] = [b.trajectory, a.trajectory];
        for (const m of [a, b]) m.certificate.trajectory_sha256 = m.trajectory.sha256;
        return records.map((r) => JSON.stringify(r));
      },
      'another environment, seed or config than was planned',
    ],
    [
      'trajectories of two members swapped',
      onFirst((r) => {
        const [a, b] = r.members;
        [a.trajectory, b.trajectory] = [b.trajectory, a.trajectory];
        for (const m of [a, b]) m.certificate.trajectory_sha256 = m.trajectory.sha256;
      }),
      'begins with another action than was planned',
    ],
    ['two members swapped', onFirst((r) => r.members.reverse()), 'stands at place'],
    ['a claim', onFirst((r) => Object.assign(r.members[0], { trajectory: claimOf(Buffer.from('x')) })), 'not in'],
    ['the size of a claim', onFirst((r) => Object.assign(r.members[0].trajectory, { bytes: 3 })), 'bytes'],
    ['a cursor', onFirst((r) => Object.assign(r, { cursor: '0-1' })), 'cursor'],
    ['a reward that is text', onFirst((r) => Object.assign(r.members[0], { reward: '1' })), 'not a group record'],
    ['a record left out', (lines) => lines.slice(1), 'no record'],
    ['a record twice', (lines) => [...lines, lines[0] as string], 'records where'],
    ['records in another order', (lines) => lines.reverse(), 'seq'],
    ['a line that is no JSON', ([, ...rest]) => ['{', ...rest], 'is not JSON'],
    ['a space', ([first, ...rest]) => [`${first} `, ...rest], 'form'],
  ])('names %s that was changed', async (_, change, named) => {
    expect((await forge(change)).join('\n')).toContain(named);
  });

  it('names counts that are not those of the records', async () => {
    const faults = await forge(
      (lines) => lines,
      (m) => ({ ...m.counts, completed: 20, no_result: 1 }),
    );
    expect(faults.join('\n')).toContain('promises 20 completed, the records have 19');
  });
});

it('the fixture has objects of its own, packs, and members without a result', () => {
  const members = fixture.entries.flatMap((e) => e.closed.members);
  expect(members.some((m) => m.status === 'no_result')).toBe(true);
  expect(fixture.entries.some((e) => e.blobs.length < e.closed.members.length)).toBe(true);
});

function flip(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] as number) ^ 1;
  return changed;
}
