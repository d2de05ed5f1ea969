import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { openResults } from '../../src/cli/results-reader.ts';
import type { GroupRecord } from '../../src/shared/group.ts';
import type { RunLedger } from '../../src/shared/ledger/run-ledger.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import { gunzipBounded } from '../../src/shared/store/content.ts';
import { shardKey } from '../../src/shared/store/shard-name.ts';
import { surveyShards } from '../../src/shared/store/shard-survey.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { collectRun } from '../../src/workers/collect/collect-run.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { Runs } from '../../src/workers/runs.ts';
import { type DrivenRun, FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { refillSpec } from '../support/refill-spec.ts';
import { expectRefilled } from '../support/refilled-groups.ts';
import { until } from '../support/until.ts';

async function startFarm({ onTestFinished }: TestContext): Promise<FarmParts> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  return farm;
}

function specIn(farm: FarmParts, each: number) {
  return refillSpec(each, (name, content) => {
    writeFileSync(path.join(farm.folder, name), content);
    return name;
  });
}

async function work(farm: FarmParts, { run }: DrivenRun): Promise<void> {
  const seat = farm.seat('rollout', run);
  const rollout = await startRolloutWorker(seat, new GatedSandbox(), async () => new Set([seat.worker]));
  farm.onClose(() => rollout.stop());
}

async function collect(farm: FarmParts, { run }: DrivenRun): Promise<void> {
  const role = await startCollectWorker(farm.seat('collect', run), run);
  farm.onClose(() => role.stop());
}

async function recordsOf(farm: FarmParts, run: string): Promise<GroupRecord[]> {
  const records: GroupRecord[] = [];
  for (const { number, sha256 } of (await surveyShards(farm.store, run)).shards) {
    const bytes = (await farm.store.get(shardKey(run, number, sha256))) as Buffer;
    const plain = await gunzipBounded(bytes, 1e8);
    if ('fault' in plain) throw new Error(plain.fault);
    const lines = plain.content.toString().split('\n').filter(Boolean);
    records.push(...lines.map((line) => JSON.parse(line) as GroupRecord));
  }
  return records;
}

it('refills degenerate groups while their tasks have answers left, and no others; all is counted once', async (context) => {
  const farm = await startFarm(context);
  const { spec, groups, expected } = specIn(farm, 6);
  const run = await farm.drive(spec);
  expect(run.settings.plan).toMatchObject({ groups: 24, spares: 30 });
  await work(farm, run);
  await until('all of the plan’s own are closed', async () => (await run.status()).groups.closed === 24);
  const reader = await openResults(farm.config, farm.server.redis, run.run);
  expect(await reader.isOver()).toBe(false);
  await collect(farm, run);
  expect(await run.end).toEqual({ state: 'done' });
  expect(await reader.isOver()).toBe(true);
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, faults: [], groups, members: 2 * groups });
  expectRefilled(await recordsOf(farm, run.run), expected);
  expect(await run.status()).toMatchObject({
    groups: { planned: groups, closed: groups },
    members: { planned: 2 * groups, accepted: 2 * groups, completed: 2 * groups },
  });
  const left = await farm.server.redis.keys(`${runKey(run.run)}:*`);
  expect(left.filter((key) => key.endsWith(':spares'))).toEqual([]);
});

it('is not over for a collector that has committed, while what that called for was opened, played and closed', async (context) => {
  const farm = await startFarm(context);
  const { spec, groups } = specIn(farm, 1);
  const run = await farm.drive(spec);
  await work(farm, run);
  const allClosed = async () =>
    Number(await run.ledger.field('closed')) === 4 + Number(await run.ledger.field('spares'));
  await until('all of the plan’s own are closed', allClosed);
  const known = await new Runs(farm.server.redis, farm.config, farm.seat('collect', run.run).log).get(run.run);
  if ('refused' in known) throw new Error(known.refused);
  // It learns that there is no further shard, and looks at the run again when everything is closed anew.
  const late = Object.assign(Object.create(run.ledger) as RunLedger, {
    fixShard: async (limits: Parameters<RunLedger['fixShard']>[0]) => {
      const fixed = await run.ledger.fixShard(limits);
      if (fixed === null) await until('what was called for is closed', allClosed);
      return fixed;
    },
  });
  const rounds = [];
  while (rounds.at(-1) !== 'sealed') rounds.push(await collectRun(late, known, farm.seat('collect', run.run).log));
  expect(rounds).toEqual(['open', 'open', 'sealed']);
  expect(await run.end).toEqual({ state: 'done' });
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, faults: [], groups });
});

it('refills none where that is not asked for, and the plan is what it was', async (context) => {
  const farm = await startFarm(context);
  const { spec } = specIn(farm, 1);
  const run = await farm.drive({ ...spec, groups: {} });
  expect(run.settings.plan).toEqual({ index: expect.anything(), groups: 4, groupSize: 2 });
  await work(farm, run);
  await collect(farm, run);
  expect(await run.end).toEqual({ state: 'done' });
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, faults: [], groups: 4 });
  const records = await recordsOf(farm, run.run);
  expect(records.map((record) => record.degenerate)).toContain(true);
  expect(JSON.stringify(records)).not.toContain('refilled_by');
});

it('closes groups that were called for when the run is cancelled: whoever was promised one finds it', async (context) => {
  const farm = await startFarm(context);
  const { spec } = specIn(farm, 6);
  const run = await farm.drive({ ...spec, limits: { in_flight: 8 } });
  await work(farm, run);
  await until('some groups are closed', async () => (await run.status()).groups.closed >= 10);
  await run.ledger.setState('cancelled', 'asked to');
  // What closed before is committed after: what it calls for is called for in a run that is over.
  await collect(farm, run);
  expect(await run.end).toEqual({ state: 'cancelled' });
  const check = await verifyRun(farm.store, run.run);
  expect(check).toMatchObject({ ok: true, faults: [] });
  expect(check.groups).toBeGreaterThan(24);
  const records = await recordsOf(farm, run.run);
  for (const { refilled_by } of records)
    if (refilled_by !== undefined)
      expect(records.find((record) => record.group === refilled_by)).toMatchObject({ closed_by: 'cancelled' });
});

it('takes what was called for from the shards where Redis has forgotten it: nothing is refilled twice, or not at all', async (context) => {
  const farm = await startFarm(context);
  const { spec, groups, expected } = specIn(farm, 12);
  const run = await farm.drive({ ...spec, limits: { in_flight: 8 } });
  await work(farm, run);
  await collect(farm, run);
  const field = async (name: string): Promise<number> => Number(await run.ledger.field(name));
  await until(
    'further groups are committed',
    async () => (await field('spares')) > 8 && (await field('committed')) > 48,
  );
  await farm.server.redis.flushall();
  expect(await run.end).toEqual({ state: 'done' });
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, faults: [], groups, members: 2 * groups });
  expectRefilled(await recordsOf(farm, run.run), expected);
  expect(await field('spares')).toBe(groups - 48);
});
