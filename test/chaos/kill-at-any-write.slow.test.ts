// Everything is killed at every place where something is written, and the same command goes on. With `SWEEP=all` also what is
// tried at some of the places is tried at all of them, which takes many minutes.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pLimit from 'p-limit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openResults } from '../../src/cli/results-reader.ts';
import { sha256 } from '../../src/shared/claim.ts';
import { readConfig } from '../../src/shared/config.ts';
import type { GroupRecord } from '../../src/shared/group.ts';
import { forgetRun } from '../../src/shared/ledger/known-runs.ts';
import { openFolderStore } from '../../src/shared/store/folder.ts';
import { collectGarbage } from '../../src/shared/store/garbage.ts';
import { resultsFromStore } from '../../src/shared/store/results.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { KillPoint } from '../support/kill-point.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { type Kind, refillSpec } from '../support/refill-spec.ts';
import { expectRefilled } from '../support/refilled-groups.ts';
import { Seeded } from '../support/seeded.ts';
import { leasesEnd, live, type SmallFarm } from '../support/small-farm.ts';

const AT_ONCE = 6;
/** One in so many of the places. */
const SOME = process.env.SWEEP === 'all' ? 1 : 12;
const MEMORY = '/dev/shm';

let server: TestRedis;
let folder: string;
beforeAll(async () => {
  // Nothing here kills Redis.
  server = await startRedis('--appendonly', 'no');
  // Nor does the disk matter: a thousand lives wait for none.
  folder = mkdtempSync(path.join(existsSync(MEMORY) ? MEMORY : tmpdir(), 'farm-test-sweep-'));
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

let farms = 0;
/** Ten groups and six that refill: shards are fixed while others are at work, and called for by the last ones. */
const TASKS: readonly Kind[] = ['hopeless', 'telling', 'helped', 'telling', 'telling'];

async function newFarm() {
  const run = `sweep-${++farms}`;
  const home = mkdtempSync(path.join(folder, 'farm-'));
  const config = readConfig({ FARM_DATA: home, LOG_LEVEL: 'silent' });
  const write = (name: string, content: string): string => {
    writeFileSync(path.join(home, name), content);
    return name;
  };
  const { spec, groups, expected } = refillSpec(2, (name, content) => write(name, withLargeOnes(content)), TASKS);
  const store = await openFolderStore(config.store);
  const redis = server.redis;
  const limited = { ...spec, limits: { in_flight: 4 } };
  const farm: SmallFarm = { run, folder: home, config, spec: limited, redis, store, life: 1 };
  return { farm, groups, expected };
}

/** Of two tasks the episodes are too large to travel in the ledger. */
function withLargeOnes(answers: string): string {
  return answers
    .split('\n')
    .map((line, i) => {
      if (!/telling-[16]/.test(line)) return line;
      const noise = Array.from({ length: 60 }, (_, n) => sha256(`${i} ${n}`)).join('');
      return line.replace('"actions":[', `"actions":["${noise}",`);
    })
    .join('\n');
}

type NewFarm = Awaited<ReturnType<typeof newFarm>>;

/** What befalls the ledger while nobody lives, and whether it keeps what it had. */
interface Aftermath {
  happens: (farm: SmallFarm) => Promise<unknown>;
  keeps: boolean;
}

const NOTHING: Aftermath = { happens: async () => {}, keeps: true };
const ANOTHER_SERVER: Aftermath = { happens: anotherServer, keeps: true };
const FORGOTTEN: Aftermath = { happens: ({ run, redis }) => forgetRun(redis, run), keeps: false };

async function anotherServer({ run, redis }: SmallFarm): Promise<void> {
  const key = `farm:{${run}}:run`;
  if ((await redis.hexists(key, 'state')) === 1) await redis.hset(key, 'server', 'another');
}

/** The ledger as it is now; to be brought back later, on another server. */
async function keptLedger({ run, redis }: SmallFarm): Promise<Aftermath> {
  const kept = new Map<string, Buffer>();
  for (const key of await redis.keys(`farm:{${run}}:*`)) kept.set(key, (await server.redis.dumpBuffer(key)) as Buffer);
  const happens = async (farm: SmallFarm): Promise<void> => {
    await forgetRun(redis, run);
    for (const [key, value] of kept) await redis.restore(key, 0, value);
    await anotherServer(farm);
  };
  return { happens, keeps: false };
}

/** One life, until it dies at its point. False if it came to its end before. */
async function dies(farm: SmallFarm, point: KillPoint): Promise<boolean> {
  const redis = server.redis.duplicate();
  await redis.ping();
  const life = live({ ...farm, redis: point.redis(redis), store: point.store(farm.store) }).then(() => false);
  try {
    return await Promise.race([life, point.died.then(() => true)]);
  } finally {
    point.bury();
    await life.catch(() => {});
    redis.disconnect();
  }
}

async function linesOf({ config, redis, run }: SmallFarm): Promise<string[]> {
  if ((await redis.hexists(`farm:{${run}}:run`, 'state')) === 0) return [];
  const lines: string[] = [];
  for await (const { line } of (await openResults(config, redis, run)).after(0)) lines.push(line);
  return lines;
}

async function shardLinesOf({ store, run }: SmallFarm): Promise<string[]> {
  const lines: string[] = [];
  for await (const { line } of resultsFromStore(store, run, 0)) lines.push(line);
  return lines;
}

/** What is done of members of open groups, and need not be done again. */
async function doneOf({ redis, run }: SmallFarm): Promise<string[]> {
  const done: string[] = [];
  for (const key of await redis.keys(`farm:{${run}}:g:*`)) {
    const group = key.slice(key.lastIndexOf(':') + 1);
    for (const [name, stage] of Object.entries(await redis.hgetall(key))) {
      const member = /^(\d+)\.s$/.exec(name)?.[1];
      if (member === undefined) continue;
      if (['rolled', 'verifying', 'accepted'].includes(stage)) done.push(`rollout ${group}-${member}`);
      if (stage === 'accepted') done.push(`verify ${group}-${member}`);
    }
  }
  return done;
}

function doneIn(lines: readonly string[]): string[] {
  const records = lines.map((line) => JSON.parse(line) as GroupRecord);
  return records.flatMap(({ group, members }) =>
    members.flatMap(({ member }) => [`rollout ${group}-${member}`, `verify ${group}-${member}`]),
  );
}

/** What stands, whatever comes: what a reader was given, and what is done. */
async function standing(farm: SmallFarm, { keeps }: Aftermath): Promise<{ lines: string[]; done: Set<string> }> {
  // It is known since when the run is there: what it has put is safe from gc.
  const [state, since] = await farm.redis.hmget(`farm:{${farm.run}}:run`, 'state', 'opened_at');
  if (state) expect(since).not.toBeNull();
  const lines = keeps ? await linesOf(farm) : await shardLinesOf(farm);
  return { lines, done: new Set([...doneIn(lines), ...(keeps ? await doneOf(farm) : [])]) };
}

/** The same command again, to the end. */
async function goesOn({ farm, groups, expected }: NewFarm, aftermath: Aftermath): Promise<void> {
  const before = await standing(farm, aftermath);
  await aftermath.happens(farm);
  await leasesEnd(farm);
  const again: string[] = [];
  await live({ ...farm, life: farm.life + 1, onBegin: (what) => before.done.has(what) && again.push(what) });
  expect(again).toEqual([]);
  const lines = await linesOf(farm);
  expect(lines.slice(0, before.lines.length)).toEqual(before.lines);
  const records = lines.map((line) => JSON.parse(line) as GroupRecord);
  if (farm.ends === undefined) expectRefilled(records, expected);
  else expectEnded(records);
  await expectSound(farm, farm.ends === undefined ? groups : records.length);
}

/** Of a run that ended before its plan: each group of the plan once, and each that was promised. */
function expectEnded(records: readonly GroupRecord[]): void {
  const wanted = [...Array(2 * TASKS.length).keys(), ...records.flatMap((r) => r.refilled_by ?? [])];
  expect(records.map((record) => record.group).sort((a, b) => a - b)).toEqual(wanted.sort((a, b) => a - b));
}

async function expectSound({ store, run, redis }: SmallFarm, groups: number): Promise<void> {
  const options = { unfinished: [], dry: false, onGarbage: () => {}, ageMs: -60_000 };
  expect(await collectGarbage(store, options)).toMatchObject({ refused: null, leftByOthers: 0, unfinishedPuts: 0 });
  expect(await verifyRun(store, run)).toMatchObject({ ok: true, faults: [], groups, members: 2 * groups });
  const left = (await redis.keys(`farm:{${run}}:*`)).map((key) => key.slice(key.indexOf('}') + 2));
  expect(left.filter((name) => !['run', 'closed', 'out', 'causes', 'late'].includes(name))).toEqual([]);
}

/** Writes of a whole life, and those of them that are made side by side. */
async function wholeLife(ends?: SmallFarm['ends']): Promise<KillPoint> {
  const { farm } = await newFarm();
  const whole = new KillPoint(Number.POSITIVE_INFINITY, 'done');
  expect(await dies({ ...farm, ends }, whole)).toBe(false);
  return whole;
}

async function eachOf<T>(cases: readonly T[], one: (item: T, made: NewFarm, died: string[]) => Promise<void>) {
  const atOnce = pLimit(AT_ONCE);
  const tried = cases.map((item) =>
    atOnce(async () => {
      const died: string[] = [];
      await one(item, await newFarm(), died).catch((cause: unknown) => {
        throw new Error(`killed: ${died.join(', then ')}`, { cause });
      });
    }),
  );
  await Promise.all(tried);
}

/** Dies at every write, or every some; where writes are made side by side also without the one, and with the others. */
async function sweep(aftermath: Aftermath, every: number, ends?: SmallFarm['ends']): Promise<void> {
  const { writes, crowded } = await wholeLife(ends);
  expect(crowded.size).toBeGreaterThan(0);
  const all = Array.from({ length: writes }, (_, i) => i + 1);
  const points = [
    ...all.map((at) => ({ at, mode: 'done' as const })),
    ...[...crowded].map((at) => ({ at, mode: 'lost' as const })),
  ];
  await eachOf(
    points.filter((_, i) => i % every === 0),
    async ({ at, mode }, made, died) => {
      made.farm.ends = ends;
      const point = new KillPoint(at, mode);
      if (!(await dies(made.farm, point))) return;
      died.push(point.where);
      await goesOn(made, aftermath);
    },
  );
}

describe('killed at a write, the same command goes on as if nothing had been', () => {
  it('at any', { timeout: 300_000 }, () => sweep(NOTHING, 1));

  it.each<[string, Aftermath, SmallFarm['ends']?]>([
    ['and Redis came back as another server, with all that it had', ANOTHER_SERVER],
    ['and Redis forgot the run, of which the shards in the store are left', FORGOTTEN],
    ['of a run that is cancelled', NOTHING, { state: 'cancelled', exit: '', closed: 7 }],
    ['of a run that is cancelled, and Redis forgot it', FORGOTTEN, { state: 'cancelled', exit: '', closed: 7 }],
    ['of a run that its verifier stops', NOTHING, { state: 'stopped', exit: '2', closed: 7 }],
  ])('at some, %s', (_, aftermath, ends) => sweep(aftermath, SOME, ends));

  it('and killed again, wherever that is; also if Redis then comes back as it was at the first time', async () => {
    const { writes } = await wholeLife();
    const chance = new Seeded(7);
    const pairs = Array.from({ length: Math.ceil(writes / SOME) }, () => [chance.below(writes), chance.below(writes)]);
    const cases = pairs.flatMap(([first = 0, second = 0]) => [
      { first, second, comesBack: false },
      { first, second, comesBack: true },
    ]);
    await eachOf(cases, async ({ first, second, comesBack }, made, died) => {
      const { farm } = made;
      const [one, other] = [new KillPoint(first + 1, 'done'), new KillPoint(second + 1, 'done')];
      if (!(await dies(farm, one))) return;
      died.push(one.where);
      const kept = await keptLedger(farm);
      const before = await standing(farm, NOTHING);
      await leasesEnd(farm);
      farm.life++;
      if (await dies(farm, other)) died.push(other.where);
      expect((await linesOf(farm)).slice(0, before.lines.length)).toEqual(before.lines);
      await goesOn(made, comesBack ? kept : NOTHING);
    });
  });
});
