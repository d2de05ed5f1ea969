// A worker that has lost a member to another one is told so, ends its episode and its box, and what it says does not count; a
// healthy one keeps its members through whatever holds its heartbeats up for less than a lease.

import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import { runKey } from '../../src/shared/ledger/script.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { TIMED } from '../support/timed.ts';
import { until } from '../support/until.ts';

const SPEC = {
  group_size: 1,
  tasks: [{ id: 's', env: 'command', config: { files: {}, task: 'x', expected_stdout: 'hello', timeout: 60 } }],
  policy: { kind: 'scripted', actions: [['echo', 'hello']] },
};

/** Ends the lease of member 0 of group 0 where the attempt with this token still has it: whether it has. */
const LATE = `
if redis.call('HGET', KEYS[1], '0.t') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], '0.l', 1)
redis.call('ZADD', KEYS[2], 'XX', 1, '0-0')
return 1`;

async function farmOf({ onTestFinished }: TestContext): Promise<FarmParts> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  return farm;
}

async function rollout(farm: FarmParts, run: string, sandbox: GatedSandbox): Promise<void> {
  const seat = farm.seat('rollout', run);
  const role = await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker]));
  farm.onClose(() => role.stop());
}

describe('a worker', () => {
  it('whose member was begun by another one ends its episode, and is not heard', async (context) => {
    const farm = await farmOf(context);
    const run = await farm.drive(SPEC);
    const [mine, theirs] = [new GatedSandbox(), new GatedSandbox()];
    await rollout(farm, run.run, mine);
    await until('it is at work', () => mine.waiting === 1);
    const key = `${runKey(run.run)}:g:0`;
    const token = await farm.server.redis.hget(key, '0.t');
    // Its heartbeats come too late: its lease is over, never that of the one that has it next.
    await rollout(farm, run.run, theirs);
    const keys = [key, `${runKey(run.run)}:live`];
    await until('another attempt is begun', async () => {
      return (await farm.server.redis.eval(LATE, 2, ...keys, token as string)) === 0;
    });
    await until('the first one ends its episode', () => mine.waiting + theirs.waiting === 1);
    await until('and says so', () => farm.lines.some((line) => line.msg === 'attempt' && line.status === 'ended'));
    expect(farm.lines).toContainEqual(expect.objectContaining({ count: 1, members: ['0-0'], worker: 'rollout-1' }));
    for (const sandbox of [mine, theirs]) sandbox.release();
    const collect = await startCollectWorker(farm.seat('collect', run.run), run.run);
    farm.onClose(() => collect.stop());
    expect(await run.end).toEqual({ state: 'done' });
    expect((await run.status()).members).toMatchObject({ accepted: 1, completed: 1 });
    const told = farm.lines.filter((line) => line.msg === 'attempt').map((line) => line.ledger ?? line.why);
    expect(told.sort()).toEqual(['accepted', 'superseded']);
  });

  it('that is not heard of is named, since when and until when, while its members are still its own', async (context) => {
    const farm = await farmOf(context);
    const run = await farm.drive(SPEC);
    const sandbox = new GatedSandbox();
    await rollout(farm, run.run, sandbox);
    await until('it is at work', () => sandbox.waiting === 1);
    expect((await run.status()).waiting_for.filter((w) => /not been heard/.test(w.phase))).toEqual([]);
    // As it stands four seconds after its last heartbeat.
    const { redis } = farm.server;
    const silent = await until('it is named before its next heartbeat', async () => {
      const lease = Number((await redis.time())[0]) * 1000 + 3_500;
      const transaction = redis.multi().hset(`${runKey(run.run)}:g:0`, '0.l', lease);
      await transaction.zadd(`${runKey(run.run)}:live`, lease, '0-0').exec();
      return (await run.status()).waiting_for.find((w) => /not been heard/.test(w.phase));
    });
    expect(silent.member).toBe('0-0');
    expect(silent.phase).toMatch(
      /^worker rollout-1 has not been heard of for [3-9]\.\d s: this member is given to others in [0-4]\.\d s$/,
    );
    await until('it is heard of again', async () =>
      (await run.status()).waiting_for.every((w) => !/not been heard/.test(w.phase)),
    );
    sandbox.release();
  });

  it('whose event loop stands still for five seconds, again and again, keeps its members', {
    ...TIMED,
    timeout: 150_000,
  }, async (context) => {
    const farm = await farmOf(context);
    const run = await farm.drive(SPEC);
    const sandbox = new GatedSandbox();
    await rollout(farm, run.run, sandbox);
    await until('it is at work', () => sandbox.waiting === 1);
    const token = await farm.server.redis.hget(`${runKey(run.run)}:g:0`, '0.t');
    for (let stalls = 0; stalls < 2; stalls++) {
      const over = performance.now() + 5_000;
      while (performance.now() < over);
      // Heartbeats come again.
      await wait(1_500);
    }
    expect(await farm.server.redis.hget(`${runKey(run.run)}:g:0`, '0.t')).toBe(token);
    expect(sandbox.waiting).toBe(1);
    expect(await run.ledger.field('lost')).toBeNull();
    sandbox.release();
    await until('it is accepted', async () => (await run.status()).members.completed === 1);
    expect(farm.lines.filter((line) => line.msg === 'attempt').map((line) => line.attempt)).toEqual([1]);
  });
});
