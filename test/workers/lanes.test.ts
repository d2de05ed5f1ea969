import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Queue, Worker } from 'bullmq';
import { describe, expect, it, type TestContext } from 'vitest';
import { laneOf } from '../../src/shared/lane.ts';
import { present } from '../../src/shared/presence.ts';
import { openRedis } from '../../src/shared/redis/connect.ts';
import { ENVIRONMENT_CONFIGS } from '../../src/shared/spec/environment-config.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import type { Role } from '../../src/workers/role.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const SLOTS = { rollout: 2, light: 2 };
const say = (id: string) => ({
  id,
  env: 'command',
  config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 },
});
/** Sandboxed, and stuck for as long as no box opens. */
const boxed = (groups: number) => ({
  group_size: 2,
  tasks: Array.from({ length: groups }, (_, i) => say(`s${i}`)),
  policy: { kind: 'scripted', actions: [['echo', 'hello']] },
});
const light = (groups: number) => ({
  group_size: 2,
  tasks: guessTasks(groups),
  policy: { kind: 'scripted', actions: [4, 2] },
});

async function farmWith({ onTestFinished }: TestContext, realm: string): Promise<[FarmParts, GatedSandbox]> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  const sandbox = new GatedSandbox();
  const seat = farm.seat('rollout', realm, 0, SLOTS);
  const stopping = (role: Role): void => farm.onClose(() => role.stop());
  stopping(await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker])));
  stopping(await startCollectWorker(farm.seat('collect', realm), null));
  return [farm, sandbox];
}

describe.concurrent('lanes', () => {
  it('are needed, because a priority does nothing while the slots are full: the most urgent job waits for a long one', async (context) => {
    const farm = await FarmParts.start();
    context.onTestFinished(() => farm.close());
    const connection = openRedis(farm.server.place);
    const queue = new Queue('one-for-all', { connection });
    const gates: (() => void)[] = [];
    const begun: string[] = [];
    const worker = new Worker(
      'one-for-all',
      async (job) => {
        begun.push(job.name);
        if (job.name === 'long') await new Promise<void>((resolve) => gates.push(resolve));
      },
      { connection, concurrency: 2 },
    );
    farm.onClose(async () => {
      for (const gate of gates) gate();
      await worker.close(true);
      await queue.close();
      connection.disconnect();
    });
    await queue.addBulk(['long', 'long', 'long'].map((name) => ({ name, data: {}, opts: { priority: 10 } })));
    await until('the slots are full', () => gates.length === 2);
    await queue.add('urgent', {}, { priority: 1 });
    expect(await queue.getJobCounts('prioritized', 'active')).toEqual({ prioritized: 2, active: 2 });
    expect(begun).toEqual(['long', 'long']);
    gates[0]?.();
    await until('the urgent one is begun', () => begun.includes('urgent'));
    expect(begun.slice(0, 3)).toEqual(['long', 'long', 'urgent']);
  });

  it('a run of light episodes ends while every slot for sandboxed ones is full and nothing of them moves', async (context) => {
    const [farm, sandbox] = await farmWith(context, 'two-runs');
    const big = await farm.drive(boxed(40), 'two-runs');
    await until('the sandboxed slots are full', () => sandbox.waiting === SLOTS.rollout);
    const small = await farm.drive(light(10), 'two-runs');
    expect(await small.end).toEqual({ state: 'done' });
    expect(sandbox.waiting).toBe(SLOTS.rollout);
    const waits = (await big.status()).waiting_for.map((w) => w.phase);
    expect(waits).toContain(
      "waiting for one of the fleet's rollout places (3 for 2 slots, 3 are this run's, runs that share them: 1)",
    );
    sandbox.release();
  });

  it('the light groups of one run do not wait for its sandboxed ones, though those stand before them in the plan', async (context) => {
    const [farm, sandbox] = await farmWith(context, 'mixed');
    const mixed = {
      ...light(0),
      tasks: [...boxed(20).tasks, ...guessTasks(5)],
      policy: { kind: 'completions', path: 'c.jsonl', cycle: true },
    };
    const lines = mixed.tasks.map(({ id, env }) => ({
      task_id: id,
      actions: env === 'guess' ? [4, 2] : [['echo', 'hello']],
    }));
    writeFileSync(path.join(farm.folder, 'c.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    const run = await farm.drive(mixed, 'mixed');
    await until('the light groups are closed', async () => (await run.status()).groups.closed === 5);
    expect(sandbox.waiting).toBe(SLOTS.rollout);
    sandbox.release();
  });

  it('that nobody serves are named in what a run waits for', async (context) => {
    const farm = await FarmParts.start();
    context.onTestFinished(() => farm.close());
    const run = await farm.drive(light(1), 'nobody');
    const waits = await until('its members are queued', async () => {
      const { waiting_for } = await run.status();
      return waiting_for.length > 0 && waiting_for;
    });
    expect(waits).toEqual([
      expect.objectContaining({ member: '0-0', phase: 'waiting for a worker: none here has light slots' }),
    ]);
    expect(waits[0]?.deadline_s).toBeGreaterThan(0);
  });

  it('are decided from the environment’s name, and told by each worker with its slots', async (context) => {
    for (const [name, { usesSandbox }] of ENVIRONMENT_CONFIGS)
      expect(laneOf(name)).toBe(usesSandbox ? 'rollout' : 'light');
    expect(laneOf('of a user’s own')).toBe('rollout');
    const [farm] = await farmWith(context, 'told');
    expect((await present(farm.server.redis)).find((p) => p.role === 'rollout')?.slots).toEqual(SLOTS);
  });
});
