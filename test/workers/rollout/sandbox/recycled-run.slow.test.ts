// A run whose episodes have boxes in turn, by the real worker and the real engine: fewer boxes than episodes, each episode as
// if its box were its own, and a certificate that says so.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { groupRecordSchema } from '../../../../src/shared/group.ts';
import { resultsFromStore } from '../../../../src/shared/store/results.ts';
import { verifyRun } from '../../../../src/shared/store/verify-run.ts';
import { startCollectWorker } from '../../../../src/workers/collect/worker.ts';
import { createDockerDriver } from '../../../../src/workers/rollout/sandbox/docker.ts';
import { fleetGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { startRolloutWorker } from '../../../../src/workers/rollout/worker.ts';
import { FarmParts } from '../../../support/farm-parts.ts';
import { containersOf } from '../../../support/outside.ts';
import { until } from '../../../support/until.ts';
import { LIMITS } from '../../sandbox-contract.ts';

const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();

// Leaves a file, a process and a bad name for the next; passes only where nothing of an earlier one is.
const ACTION = [
  'sh',
  '-c',
  'if ls -A | grep -q . || ls -A /tmp /dev/shm | grep -q left || [ $(ls -d /proc/[0-9]* | wc -l) -gt 5 ]; then echo found; fi; ' +
    'touch left /tmp/left /dev/shm/left; mkdir -m 0 closed; (setsid sleep 1000 &) ; echo clean',
];

async function play(isolation: 'fresh' | 'recycled'): Promise<{ isolations: string[]; opened: number }> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  const run = await farm.drive({
    group_size: 4,
    tasks: [0, 1, 2].map((n) => ({
      id: `t${n}`,
      env: 'command',
      config: { files: {}, task: 'Be clean.', expected_stdout: 'clean', timeout: 10 },
    })),
    policy: { kind: 'scripted', actions: [ACTION] },
    sandbox: { isolation },
  });
  const seat = farm.seat('rollout', run.run, 2);
  const engine = createDockerDriver({ dockerHost: null });
  let opened = 0;
  const open = engine.open.bind(engine);
  engine.open = (...given) => {
    opened += 1;
    return open(...given);
  };
  const orphan = await docker(
    ...['create', '--network', 'none', '--label', `rollout-farm.farm=${seat.farmId}`],
    ...[
      '--label',
      'rollout-farm.worker=dead',
      '--label',
      `rollout-farm.expires=${Date.now() + 60_000}`,
      LIMITS.image,
      'true',
    ],
  );
  const pool = createPool(engine, () => fleetGate(seat.redis, engine, seat.worker));
  const worker = await startRolloutWorker(seat, pool, async () => new Set([seat.worker]));
  const collector = await startCollectWorker(farm.seat('collect', run.run), run.run);
  expect(await run.end).toEqual({ state: 'done' });
  await until(
    'what a dead worker had created is gone',
    async () => !(await containersOf(seat.farmId)).includes(orphan),
  );
  await worker.drain();
  await collector.drain();
  expect(await containersOf(seat.farmId)).toEqual([]);
  expect(await seat.redis.keys('farm:{engine:*')).toEqual([]);
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, members: 12, faults: [] });
  const isolations: string[] = [];
  for await (const { line } of resultsFromStore(farm.store, run.run, 0))
    for (const member of groupRecordSchema.parse(JSON.parse(line)).members) {
      expect(member).toMatchObject({ status: 'completed', reward: 1 });
      if (member.status === 'completed') isolations.push(member.certificate.isolation);
    }
  return { isolations: [...new Set(isolations)], opened };
}

test('a recycled run has its episodes in a few boxes, one after the other, and says so', async () => {
  const { isolations, opened } = await play('recycled');
  expect(isolations).toEqual(['recycled']);
  expect(opened).toBeLessThan(12);
});

test('a fresh run has a box for each episode, and says so', async () => {
  const { isolations, opened } = await play('fresh');
  expect(isolations).toEqual(['fresh']);
  expect(opened).toBeGreaterThanOrEqual(12);
});
