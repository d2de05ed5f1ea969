import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { openResults } from '../../src/cli/results-reader.ts';
import { type OpenedRun, type OpenOptions, openRun } from '../../src/producer/open-run.ts';
import { objectKey, sha256 } from '../../src/shared/claim.ts';
import { readConfig } from '../../src/shared/config.ts';
import { FarmError } from '../../src/shared/errors.ts';
import { mapOf } from '../../src/shared/json/value.ts';
import { keyOfRun } from '../../src/shared/ledger/key-of-run.ts';
import { forgetRun, knownRuns } from '../../src/shared/ledger/known-runs.ts';
import { MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { reconcile } from '../../src/shared/ledger/reconcile.ts';
import { identityOf, wantedKey, writeSettings } from '../../src/shared/ledger/run-settings.ts';
import { openLog } from '../../src/shared/log.ts';
import type { Completed } from '../../src/shared/outcome.ts';
import { readDocument } from '../../src/shared/plan/reader.ts';
import { processIdentity } from '../../src/shared/process-identity.ts';
import { putContent } from '../../src/shared/store/content.ts';
import { openFolderStore } from '../../src/shared/store/folder.ts';
import type { Store } from '../../src/shared/store/store.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { collectRun } from '../../src/workers/collect/collect-run.ts';
import { collectShard } from '../../src/workers/collect/collector.ts';
import { finishRun } from '../../src/workers/collect/finish.ts';
import { Documents } from '../../src/workers/documents.ts';
import { completedWith } from '../support/outcomes.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { savedEpisode } from '../support/saved-episode.ts';
import { guessTasks, readRunSpec } from '../support/spec.ts';

let server: TestRedis;
let folder: string;
let store: Store;
beforeAll(async () => {
  server = await startRedis();
  folder = mkdtempSync(path.join(tmpdir(), 'farm-test-open-'));
  store = await openFolderStore(path.join(folder, 'store'));
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});
afterEach(() => {
  vi.useRealTimers();
});

const SPEC = {
  name: 'opened',
  seed: 7,
  group_size: 2,
  tasks: guessTasks(5),
  policy: { kind: 'scripted', actions: [4, 2, 6] },
};

/** What `guessTasks` gives its tasks. */
const CONFIG = mapOf({ low: 1n, high: 8n, max_guesses: 4n });

let runs = 0;
const newRun = (): string => `open-${++runs}`;

const VERIFIED = {
  tasks: [{ id: 'x', env: 'text', config: {}, prompt: 'p' }],
  domain: { platform_id: 1 },
  policy: { kind: 'scripted', actions: ['{}'] },
};

type Opening = Partial<OpenOptions> & { apiKey?: string };

async function open(run: string, change: Record<string, unknown> = {}, options: Opening = {}) {
  return (await reading(run, change, options))();
}

/** The spec is read; what this gives opens the run. */
async function reading(run: string, change: Record<string, unknown>, { apiKey, ...options }: Opening = {}) {
  const read = await readRunSpec(folder, readConfig({ FARM_DATA: folder }), { ...SPEC, ...change });
  const { wanted } = await keyOfRun(server.redis, run, read.spec.verifier, apiKey ?? null);
  const held = wantedKey(read.spec.verifier, apiKey ?? null);
  return () =>
    openRun({
      run,
      redis: server.redis,
      store,
      realm: 'shared',
      owner: 'owner',
      key: wanted === null ? null : held,
      ...read,
      ...options,
    });
}

async function refusal(opening: Promise<unknown>): Promise<FarmError> {
  const error = await opening.then(
    () => null,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(FarmError);
  return error as FarmError;
}

/** Opens the first groups and has all their members accepted, with contents that the store can vouch for. */
async function finishGroups({ ledger, epoch, plan, settings }: OpenedRun, to: number, mark = ''): Promise<void> {
  const next = Number(await ledger.field('next'));
  await ledger.openGroups(epoch, next, await plan.entries(next, to));
  const worker = new MemberLedger(server.redis, 'worker');
  for (const due of (await ledger.due(epoch, { rollout: 1_000, light: 1_000 }))?.members ?? []) {
    const attempt = await worker.begin({ run: ledger.run, group: due.group, member: due.member }, 'rollout');
    if ('refused' in attempt) throw new Error(attempt.refused);
    const reward = due.group - due.member;
    const noise = `${settings.incarnation} ${due.group}-${due.member} ${mark}`;
    const kept = await putContent(
      store,
      savedEpisode({ seed: BigInt(due.group), config: CONFIG, total: reward, noise }),
    );
    const plain = completedWith(due.member, reward);
    const record: Completed = {
      ...plain,
      trajectory: kept.claim,
      certificate: { ...plain.certificate, trajectory_sha256: kept.claim.sha256 },
    };
    const blobs = kept.inline === null ? [] : [{ sha256: kept.claim.sha256, bytes: kept.inline }];
    expect(await worker.accept(attempt, record, blobs)).toBe('accepted');
  }
}

function collect(opened: OpenedRun) {
  return collectShard(store, opened.ledger, identityOf(opened.ledger.run, opened.settings), {
    most: 100,
    least: 1,
    final: true,
  });
}

const LOG = openLog(readConfig({ LOG_LEVEL: 'silent' }), 'test');

/** One round of the collect worker. */
async function collected({ ledger, settings }: OpenedRun): Promise<void> {
  await collectRun(ledger, { settings, store, documents: new Documents(store) }, LOG);
}

/** As the driver does when Redis is another server. */
async function compared(opened: OpenedRun): Promise<void> {
  await opened.ledger.setField('server', 'another');
  expect(await reconcile(opened.ledger, store, identityOf(opened.ledger.run, opened.settings), LOG)).toBe(true);
}

/** What a trainer reads. */
async function linesOf(run: string): Promise<string[]> {
  const reader = await openResults(readConfig({ FARM_DATA: folder }), server.redis, run);
  const lines: string[] = [];
  for await (const row of reader.after(0)) lines.push(row.line);
  return lines;
}

/** Two groups are closed and in a shard, and Redis comes back as it was before. */
async function losesWrites(opened: OpenedRun): Promise<void> {
  const key = `farm:{${opened.ledger.run}}`;
  const before = (await server.redis.dumpBuffer(`${key}:run`)) as Buffer;
  await finishGroups(opened, 2);
  await collect(opened);
  await server.redis.del(`${key}:closed`, `${key}:out`);
  await server.redis.restore(`${key}:run`, 0, before, 'REPLACE');
}

async function finish(opened: OpenedRun): Promise<void> {
  const { spec } = await readRunSpec(folder, readConfig({ FARM_DATA: folder }), SPEC);
  await finishRun(store, {
    identity: identityOf(opened.ledger.run, opened.settings),
    state: 'done',
    spec: spec.document,
    plan: opened.settings.plan,
    inputs: [],
    link: null,
  });
}

describe('a run that is opened', () => {
  it('has its plan in the store, each group’s document in its place, and is known', async () => {
    const run = newRun();
    const opened = await open(run);
    expect(opened).toMatchObject({ resumed: false, settings: { name: 'opened', plan: { groups: 5, groupSize: 2 } } });
    const documents = await Promise.all(
      (await opened.plan.entries(0, 5)).map((entry) => readDocument(store, entry.place)),
    );
    expect(documents.map((d) => [d.task_id, d.seed])).toEqual([0, 1, 2, 3, 4].map((i) => [`g${i}`, BigInt(i)]));
    expect(await knownRuns(server.redis, 'shared')).toContain(run);
    expect(await opened.ledger.field('state')).toBe('running');
  });

  it('is resumed by the same id: what was accepted is not planned again', async () => {
    const run = newRun();
    const first = await open(run);
    await finishGroups(first, 3);
    await first.ledger.setState('stopped', 'a reason', '3');
    const again = await open(run);
    expect(again.resumed).toBe(true);
    expect(again.settings).toEqual(first.settings);
    expect(await again.plan.entries(0, 5)).toEqual(await first.plan.entries(0, 5));
    expect(await again.ledger.fields()).toMatchObject({ state: 'running', accepted: '6', closed: '3', next: '3' });
    await finishGroups(again, 5);
    expect(await again.ledger.fields()).toMatchObject({ accepted: '10', closed: '5', late: '0' });
  });

  it('of the same spec under another id is another run, over the same plan', async () => {
    const one = await open(newRun());
    const other = await open(newRun());
    expect(other.settings.plan).toEqual(one.settings.plan);
    expect(other.settings.incarnation).not.toBe(one.settings.incarnation);
  });

  it('keeps a fingerprint of the key, and nothing of the key itself', async () => {
    const key = 'at_canary_8d1f0c77';
    const opened = await open(newRun(), VERIFIED, { apiKey: key });
    expect(opened.settings.keyFingerprint).toMatch(/^[0-9a-f]{16}$/);
    expect(JSON.stringify(await opened.ledger.fields())).not.toContain(key);
  });
});

describe('another AmberTrace key under an old id', () => {
  const [FIRST, OTHER] = [{ apiKey: 'at_first' }, { apiKey: 'at_other' }];

  it.each([
    ['another', OTHER],
    ['none', {}],
  ])('is refused with exit 2 and its fingerprint, and the run stays as it was: %s', async (_, key) => {
    const run = newRun();
    const opened = await open(run, VERIFIED, FIRST);
    await opened.ledger.setState('stopped', 'a reason');
    const error = await refusal(open(run, VERIFIED, key));
    expect(error).toMatchObject({ code: 'key_changed', exit: 2 });
    expect(error.message).toContain(opened.settings.keyFingerprint?.slice(0, 6));
    expect(error.hint).toMatch(/AMBERTRACE_API_KEY/);
    expect(await opened.ledger.field('state')).toBe('stopped');
    expect(await open(run, VERIFIED, FIRST)).toMatchObject({ resumed: true });
  });

  it('is refused too where another producer opens the run at the same moment: one of the two keys holds', async () => {
    const run = newRun();
    const both = [await reading(run, VERIFIED, FIRST), await reading(run, VERIFIED, { ...OTHER, owner: 'another' })];
    const ended = await Promise.allSettled(both.map((start) => start()));
    const refused = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as FarmError] : []));
    expect(refused).toMatchObject([{ code: 'key_changed', exit: 2 }]);
  });

  it('is nothing to a run that was opened without one, nor to one that is over', async () => {
    const run = newRun();
    await open(run, VERIFIED);
    expect(await open(run, VERIFIED, OTHER)).toMatchObject({ resumed: true, settings: { keyFingerprint: null } });
    const plain = newRun();
    await open(plain, {}, FIRST);
    expect(await open(plain, {}, OTHER)).toMatchObject({ resumed: true, settings: { keyFingerprint: null } });
    const over = newRun();
    const opened = await open(over, VERIFIED, FIRST);
    await opened.ledger.setField('manifest', 'runs/over/manifest.json');
    expect(await open(over, VERIFIED, OTHER)).toMatchObject({ resumed: true });
  });

  it('is not told of a spec that has another verifier, or none: that the spec is another one is', async () => {
    const run = newRun();
    await open(run, VERIFIED, FIRST);
    expect(await refusal(open(run, {}, OTHER))).toMatchObject({ code: 'spec_changed' });
    expect(await refusal(open(run, { ...VERIFIED, domain: { platform_id: 2 } }, FIRST))).toMatchObject({
      code: 'spec_changed',
    });
  });
});

describe('a changed spec under an old id', () => {
  it.each([
    ['its seed', { seed: 8 }, /seed/],
    ['its group size', { group_size: 3 }, /group_size/],
    ['a task', { tasks: guessTasks(5, 9) }, /tasks/],
    ['its actions', { policy: { kind: 'scripted', actions: [1] } }, /policy/],
    ['its sandbox', { sandbox: { memory_mb: 128 } }, /sandbox.memory_mb/],
    ['its convention', { advantage: 'art' }, /advantage/],
  ])('is refused with exit 2 and the difference, and the run stays as it was: %s', async (_, change, difference) => {
    const run = newRun();
    const opened = await open(run);
    await opened.ledger.setState('stopped', 'a reason');
    const error = await refusal(open(run, change));
    expect(error).toMatchObject({ code: 'spec_changed', exit: 2 });
    expect(error.message).toMatch(difference);
    expect(error.hint).toMatch(/--run-id/);
    expect(await opened.ledger.field('state')).toBe('stopped');
  });

  it('is refused too where Redis has forgotten the run, and its manifest has not', async () => {
    const run = newRun();
    const first = await open(run);
    await finishGroups(first, 5);
    await collect(first);
    await finish(first);
    await forgetRun(server.redis, run);
    const error = await refusal(open(run, { seed: 8 }));
    expect(error).toMatchObject({ code: 'spec_changed', exit: 2 });
    expect(error.message).toMatch(/seed/);
    expect(await first.ledger.fields()).toEqual({});
    expect(await open(run)).toMatchObject({ resumed: false, settings: { incarnation: first.settings.incarnation } });
  });

  it('is refused too where another producer opens the run at the same moment: one of the two specs holds', async () => {
    for (let round = 0; round < 5; round++) {
      const run = newRun();
      const both = [await reading(run, {}), await reading(run, { seed: 8 }, { owner: 'another' })];
      const opening = both.map((start) => start());
      // As a detached one does: whoever opened it drives it no longer.
      for (const one of opening)
        void one.then(({ ledger }) => Promise.all(['owner', 'another'].map((o) => ledger.undrive(o)))).catch(() => {});
      const ended = await Promise.allSettled(opening);
      const refused = ended.flatMap((end) => (end.status === 'rejected' ? [end.reason as FarmError] : []));
      expect(refused).toMatchObject([{ code: 'spec_changed', exit: 2, message: expect.stringMatching(/seed/) }]);
      const [opened] = ended.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
      expect(JSON.parse((await opened?.ledger.field('settings')) ?? '')).toMatchObject({
        documentSha256: opened?.settings.documentSha256,
      });
    }
  });

  it('names a field that the run was opened without, and that another version may be the reason', async () => {
    const run = newRun();
    const opened = await open(run);
    // The same spec as a farm read it that did not know of isolation.
    const key = objectKey(opened.settings.documentSha256);
    const text = ((await store.get(key)) as Buffer).toString();
    const older = Buffer.from(text.replace(/"isolation":"fresh",/, ''));
    expect(older.length).toBeLessThan(text.length);
    await store.put(objectKey(sha256(older)), older);
    const settings = writeSettings({ ...opened.settings, documentSha256: sha256(older) });
    await opened.ledger.setField('settings', settings);
    const error = await refusal(open(run));
    expect(error).toMatchObject({ code: 'spec_changed', exit: 2 });
    expect(error.message).toMatch(/sandbox.isolation: \(nothing\) → fresh/);
    expect(error.hint).toMatch(/another version of the farm opened the run/);
  });

  it('is not one that is only written in another way', async () => {
    const run = newRun();
    const { seed, ...rest } = SPEC;
    await open(run);
    const again = await open(run, { ...rest, seed, advantage: 'trl', max_steps: 10 });
    expect(again.resumed).toBe(true);
  });
});

describe('shards in the store', () => {
  it('are taken over by an empty ledger: their groups are not done again, and the run ends sound', async () => {
    const run = newRun();
    const first = await open(run);
    await finishGroups(first, 3);
    expect(await collect(first)).toMatchObject({ kind: 'committed' });
    // Redis is another one, or has lost everything.
    await forgetRun(server.redis, run);
    const again = await open(run);
    expect(again).toMatchObject({ resumed: false, settings: { incarnation: first.settings.incarnation } });
    expect(await again.ledger.fields()).toMatchObject({ accepted: '6', closed: '3', committed: '3', shards: '1' });
    await again.ledger.openGroups(again.epoch, 0, await again.plan.entries(0, 5));
    expect((await again.ledger.due(again.epoch, { rollout: 100, light: 100 }))?.members.map((d) => d.group)).toEqual([
      3, 3, 4, 4,
    ]);
    await server.redis.zadd(`farm:{${run}}:live`, 0, '3-0', 0, '3-1', 0, '4-0', 0, '4-1');
    await finishGroups(again, 5);
    expect(await collect(again)).toMatchObject({ kind: 'committed' });
    await finish(again);
    expect(await verifyRun(store, run)).toMatchObject({ ok: true, groups: 5, members: 10, faults: [] });
  });

  it('win over a ledger that lost the writes after them', async () => {
    const run = newRun();
    await losesWrites(await open(run));
    const again = await open(run);
    expect(await again.ledger.fields()).toMatchObject({ accepted: '4', closed: '2', committed: '2' });
  });

  it.each([
    ['by who opens the run again', async ({ ledger }: OpenedRun) => void (await open(ledger.run))],
    ['after Redis came back as another server', (opened: OpenedRun) => compared(opened)],
    [
      'by a collector, of a ledger that has lost their boundaries',
      async (opened: OpenedRun) => {
        await server.redis.hdel(`farm:{${opened.ledger.run}}:run`, 'fixed_to');
        await collected(opened);
      },
    ],
  ])('put and not committed are committed %s: what closed after them stays as it was', async (_, comesBack) => {
    const run = newRun();
    const opened = await open(run);
    await finishGroups(opened, 5);
    const before = await opened.ledger.entries(1, 5);
    const died = new Error('killed');
    const dying = {
      fixShard: opened.ledger.fixShard.bind(opened.ledger),
      entries: opened.ledger.entries.bind(opened.ledger),
      commit: async () => Promise.reject(died),
    };
    await expect(
      collectShard(store, dying, identityOf(opened.ledger.run, opened.settings), { most: 2, least: 1, final: true }),
    ).rejects.toBe(died);
    const read = await linesOf(run);
    await comesBack(opened);
    expect(await opened.ledger.fields()).toMatchObject({ accepted: '10', closed: '5', late: '0' });
    expect(await linesOf(run)).toEqual(read);
    const committed = Number(await opened.ledger.field('committed'));
    expect(committed).toBeGreaterThan(0);
    expect(await opened.ledger.entries(1, 5)).toEqual(before.slice(committed));
    await collected(opened);
    expect(await linesOf(run)).toEqual(read);
    expect(await verifyRun(store, run)).toMatchObject({ ok: true, groups: 5, members: 10, faults: [] });
  });

  it('win over a ledger that closed the same groups anew, with other outcomes', async () => {
    const run = newRun();
    const opened = await open(run);
    await losesWrites(opened);
    await finishGroups(opened, 2, 'done anew');
    await open(run);
    expect(await opened.ledger.fields()).toMatchObject({ accepted: '4', closed: '2', committed: '2' });
  });
});

describe('a Redis that loses writes while the run goes on', () => {
  it('is found out by the collector: the ledger follows the store, and the rest is done anew', async () => {
    const run = newRun();
    const first = await open(run);
    await losesWrites(first);
    // Nobody has noticed: all five groups close, two of them for the second time.
    await finishGroups(first, 5, 'done anew');
    expect(await first.ledger.fields()).toMatchObject({ closed: '5', shards: '0' });
    await collected(first);
    expect(await first.ledger.fields()).toMatchObject({ accepted: '4', closed: '2', committed: '2', shards: '1' });
    await finishGroups(first, 5);
    await collected(first);
    expect(await first.ledger.field('state')).toBe('done');
    expect(await verifyRun(store, run)).toMatchObject({ ok: true, groups: 5, members: 10, faults: [] });
  });
});

describe('a run that is driven', () => {
  it('is refused to another command with exit 3, and goes on undisturbed', async () => {
    const run = newRun();
    const opened = await open(run, {}, { owner: processIdentity() });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const opening = refusal(open(run, {}, { owner: 'other' }));
    // The command waits for a lease that is renewed; its patience ends by the clock.
    const renewing = setInterval(() => {
      void opened.ledger.drive(processIdentity());
      vi.setSystemTime(Date.now() + 5_000);
    }, 50);
    const error = await opening.finally(() => clearInterval(renewing));
    expect(error).toMatchObject({ code: 'run_busy', exit: 3 });
    expect(error.hint).toContain(`farm status ${run}`);
    expect(await opened.ledger.tick(opened.epoch)).not.toBeNull();
  });

  it('by a process that is dead is taken over at once', async () => {
    const run = newRun();
    const child = spawn('sleep', ['60']);
    const owner = processIdentity(child.pid);
    const opened = await open(run, {}, { owner });
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    // Its lease does not end: whoever waited for that would wait in vain.
    const renewing = setInterval(() => void opened.ledger.drive(owner), 500);
    const again = await open(run, {}, { owner: 'other' }).finally(() => clearInterval(renewing));
    expect(again.epoch).not.toBe(opened.epoch);
    expect(await opened.ledger.tick(opened.epoch)).toBe('lost');
  });
});
