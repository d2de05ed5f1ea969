import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Driver, type DriverEnd } from '../../src/producer/driver.ts';
import { Fleet } from '../../src/shared/fleet/fleet.ts';
import { type Attempt, MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { RunLedger, type Tick } from '../../src/shared/ledger/run-ledger.ts';
import { writeSettings } from '../../src/shared/ledger/run-settings.ts';
import { readStatus } from '../../src/shared/ledger/run-status.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import { consume, MemberQueue } from '../../src/shared/queue.ts';
import { groupPlan } from '../support/group-plan.ts';
import { completedWith, memberOf, settingsWith } from '../support/outcomes.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

let shared: TestRedis;
const store = mkdtempSync(path.join(tmpdir(), 'farm-test-driver-'));
beforeAll(async () => {
  shared = await startRedis();
});
afterAll(async () => {
  await shared.close();
  rmSync(store, { recursive: true });
});

const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };
const said: string[] = [];
const log = pino({ level: 'info' }, { write: (line: string) => void said.push(line) });

interface Shape {
  groups: number;
  size: number;
  inFlight?: number;
  pausedS?: number;
  server?: TestRedis;
}
interface Seat {
  driver: Driver;
  ticks: Tick[];
  end: Promise<DriverEnd>;
}

let runs = 0;
async function openRun({ onTestFinished }: TestContext, shape: Shape) {
  const { server = shared, ...rest } = shape;
  const { groups, size } = rest;
  const run = `driver-${++runs}`;
  const ledger = new RunLedger(server.redis, run);
  const settings = settingsWith({ ...rest, store, inFlight: shape.inFlight ?? 512, pausedS: shape.pausedS ?? 3600 });
  await ledger.open({
    settings: writeSettings(settings),
    size,
    groups,
    close: 'all',
    at_least: 0,
    deadline_ms: 600_000,
    slot_wait_ms: 600_000,
    refill: 2,
    max_attempts: 3,
  });
  const queue = new MemberQueue(server.place, run);
  const fleet = new Fleet(server.redis, server.place, run);
  onTestFinished(async () => {
    fleet.close();
    await queue.close();
  });

  const drive = async (owner = 'driver', dead = ''): Promise<Seat> => {
    const driven = await ledger.drive(owner, dead);
    if (!('epoch' in driven)) throw new Error(`driven by ${driven.heldBy}`);
    const ticks: Tick[] = [];
    const driver = new Driver(run, driven.epoch, {
      redis: server.redis,
      queue,
      fleet,
      settings,
      groups,
      groupSize: size,
      plan: groupPlan(groups, PLACE),
      owner,
      log,
      onTick: (tick) => ticks.push(tick),
    });
    const end = driver.drive();
    onTestFinished(async () => {
      driver.drain();
      await end;
    });
    return { driver, ticks, end };
  };
  /** Takes members as a worker does, and says what `outcome` says. */
  const work = (concurrency: number, outcome: (attempt: Attempt, worker: MemberLedger) => Promise<unknown>): void => {
    const worker = new MemberLedger(server.redis, 'worker');
    const consumer = consume(
      server.place,
      run,
      'rollout',
      concurrency,
      async (job) => {
        const attempt = await worker.begin(memberOf(job), 'rollout');
        if (!('refused' in attempt)) await outcome(attempt, worker);
      },
      () => {},
    );
    onTestFinished(() => consumer.close());
  };
  /** What the collector does when all groups are closed. */
  const collect = async (): Promise<void> => {
    await until('all groups are closed', async () => Number(await ledger.field('closed')) === groups);
    await ledger.setField('manifest', '1');
    await ledger.setState('done');
  };
  const entries = async () => (await ledger.entries(1, groups)).map((entry) => entry.closed);
  return { run, ledger, queue, drive, work, collect, entries, server };
}

const rewardOf = (group: number, member: number): number => group + member / 8;
const accept = (attempt: Attempt, worker: MemberLedger) =>
  worker.accept(attempt, completedWith(attempt.member, rewardOf(attempt.group, attempt.member)), []);

/** Every planned member is there once, with what its worker said, and the numbers are dense. */
async function expectAllOnce(run: Awaited<ReturnType<typeof openRun>>, groups: number, size: number): Promise<void> {
  const closed = await run.entries();
  expect(closed.map((c) => c.seq)).toEqual(Array.from({ length: groups }, (_, i) => i + 1));
  expect(closed.map((c) => c.group).sort((a, b) => a - b)).toEqual(Array.from({ length: groups }, (_, i) => i));
  for (const { group, members } of closed)
    expect(members).toEqual(Array.from({ length: size }, (_, m) => completedWith(m, rewardOf(group, m))));
  expect(await run.ledger.field('accepted')).toBe(String(groups * size));
}

// Concurrent: most of it is waiting for rounds and leases.
describe.concurrent('a driver', () => {
  it('brings a run to its end, with never more members queued or at work than its cap', async (context) => {
    const [groups, size, inFlight] = [12, 4, 7];
    const run = await openRun(context, { groups, size, inFlight });
    let most = 0;
    run.work(6, async (attempt, worker) => {
      // Queued or at work.
      most = Math.max(most, await run.server.redis.zcard(`${runKey(run.run)}:live`));
      await accept(attempt, worker);
    });
    const { end, ticks } = await run.drive();
    await run.collect();
    expect(await end).toEqual({ state: 'done' });
    expect(most).toBeGreaterThanOrEqual(size);
    expect(most).toBeLessThanOrEqual(inFlight);
    for (const tick of ticks) expect(tick.open).toBeLessThan(inFlight + size);
    await expectAllOnce(run, groups, size);
  });

  it('opens one group where the window is smaller than a group', async (context) => {
    const run = await openRun(context, { groups: 3, size: 8, inFlight: 1 });
    const { ticks } = await run.drive();
    await until('some rounds', () => ticks.length > 4);
    expect(ticks.at(-1)).toMatchObject({ open: 8, next: 1 });
  });

  it('gives results in the order in which groups closed, not in that of the plan', async (context) => {
    const run = await openRun(context, { groups: 4, size: 1 });
    const order = [2, 0, 3, 1];
    const waiting = new Map<number, () => void>();
    run.work(4, async (attempt, worker) => {
      await new Promise<void>((resolve) => waiting.set(attempt.group, resolve));
      await accept(attempt, worker);
    });
    const { end } = await run.drive();
    await until('all are begun', () => waiting.size === 4);
    for (const [i, group] of order.entries()) {
      waiting.get(group)?.();
      await until('it is closed', async () => Number(await run.ledger.field('closed')) === i + 1);
    }
    await run.collect();
    await end;
    expect((await run.entries()).map((c) => c.group)).toEqual(order);
  });

  it('opens nothing while Redis is above its high-water mark, and goes on when there is room', async (context) => {
    const own = await startRedis();
    context.onTestFinished(() => own.close());
    const run = await openRun(context, { groups: 6, size: 2, inFlight: 4, server: own });
    run.work(2, accept);
    const used = Number(/used_memory:(\d+)/.exec(await own.redis.info('memory'))?.[1]);
    await own.redis.config('SET', 'maxmemory', String(Math.round(used * 1.4)));
    const { end, ticks } = await run.drive();
    await until('some rounds', () => ticks.length > 4);
    expect(ticks.at(-1)).toMatchObject({ state: 'running', next: 0, open: 0 });
    await own.redis.config('SET', 'maxmemory', '2gb');
    await run.collect();
    expect(await end).toEqual({ state: 'done' });
  });

  it('names a Redis above its high-water mark for as long as it is, also where everything is opened already', async (context) => {
    const own = await startRedis();
    context.onTestFinished(() => own.close());
    const run = await openRun(context, { groups: 2, size: 2, inFlight: 4, server: own });
    const { ticks } = await run.drive();
    await until('everything is opened', () => ticks.at(-1)?.open === 4);
    const reason = async () => (await readStatus(own.redis, run.run))?.reason ?? '';
    expect(await reason()).not.toMatch(/high-water/);
    const used = Number(/used_memory:(\d+)/.exec(await own.redis.info('memory'))?.[1]);
    await own.redis.config('SET', 'maxmemory', String(Math.round(used * 1.2)));
    expect(await reason()).toMatch(/Redis is above its high-water mark: nothing new is opened/);
    // Another reason takes nothing away from it, and neither does one that is over.
    await run.ledger.setState('paused', 'the engine does not answer');
    expect(await reason()).toMatch(/high-water mark.*; the engine does not answer/);
    await run.ledger.setState('running');
    expect(await reason()).toMatch(/high-water mark/);
    await until('the driver has said it', () =>
      said.some((line) => line.includes(run.run) && line.includes('above its high-water mark')),
    );
    await own.redis.config('SET', 'maxmemory', '0');
    expect(await reason()).not.toMatch(/high-water/);
  });

  it('whose jobs are refused for a full Redis says so, takes it for no silence, and queues them when there is room', async (context) => {
    const own = await startRedis();
    context.onTestFinished(() => own.close());
    const run = await openRun(context, { groups: 1, size: 1, pausedS: 0.2, server: own });
    const { ticks, end } = await run.drive();
    await until('its member is queued', () => ticks.at(-1)?.lanes.rollout.out === 1);
    await run.queue.obliterate();
    await own.redis.config('SET', 'maxmemory', '1000000');
    // Its job is lost, and it is to be queued again: again and again, for longer than the run would wait for a silent Redis.
    const mine = (): string[] => said.filter((line) => line.includes(`"${run.run}"`));
    const again = '#!lua flags=allow-oom\nreturn redis.call("ZADD", KEYS[1], 0, "0-0")';
    const since = performance.now();
    await until('it was refused for longer than paused_s', async () => {
      await own.redis.call('EVAL', again, '1', `${runKey(run.run)}:live`);
      return performance.now() - since > 1_500 && mine().some((line) => line.includes('Redis is full'));
    });
    expect(mine().filter((line) => line.includes('waiting for Redis'))).toEqual([]);
    await own.redis.config('SET', 'maxmemory', '0');
    await own.redis.zadd(`${runKey(run.run)}:live`, 0, '0-0');
    run.work(1, accept);
    await run.collect();
    expect(await end).toEqual({ state: 'done' });
  });

  it('tries a paused run again after a rest, and lets it stand until then', async (context) => {
    const run = await openRun(context, { groups: 2, size: 2 });
    run.work(2, accept);
    await run.ledger.setState('paused', 'the engine does not answer');
    const { end, ticks } = await run.drive();
    await run.collect();
    expect(await end).toEqual({ state: 'done' });
    const paused = ticks.filter((t) => t.state === 'paused');
    expect(paused.length).toBeGreaterThan(3);
    expect(paused.at(-1)).toMatchObject({ clockMs: 0, next: 0 });
  });

  it('stops a run that was paused for too long: exit 3, with the reason, and resumable', async (context) => {
    const run = await openRun(context, { groups: 1, size: 1, pausedS: 0.3 });
    await run.ledger.setState('paused', 'the store is full');
    const { end } = await run.drive();
    expect(await end).toEqual({ state: 'stopped' });
    expect(await run.ledger.field('exit')).toBe('3');
    expect(await run.ledger.field('reason')).toMatch(/paused_s.*the store is full/);
    run.work(1, accept);
    await run.ledger.setState('running');
    const again = await run.drive();
    await run.collect();
    expect(await again.end).toEqual({ state: 'done' });
  });

  it('closes all groups of a cancelled run, also those that were never opened', async (context) => {
    const [groups, size] = [2_000, 2];
    const run = await openRun(context, { groups, size, inFlight: 4 });
    const { end, ticks } = await run.drive();
    await until('the window is open', () => ticks.at(-1)?.open === 4);
    const worker = new MemberLedger(run.server.redis, 'worker');
    const attempt = await worker.begin({ run: run.run, group: 0, member: 1 }, 'rollout');
    if ('refused' in attempt) throw new Error(attempt.refused);
    await accept(attempt, worker);
    await run.ledger.setState('cancelled');
    await run.collect();
    expect(await end).toEqual({ state: 'cancelled' });
    // Many batches a round: 100,000 groups must be closed within the minute that `cancel` waits.
    const rounds = ticks.filter((t) => t.state === 'cancelled' && t.closed < groups);
    expect(rounds.length).toBeLessThan(16);
    const members = (await run.entries()).flatMap((c) => c.members);
    expect(members).toHaveLength(groups * size);
    expect(members.filter((m) => m.status === 'completed')).toEqual([completedWith(1, rewardOf(0, 1))]);
    expect(members.filter((m) => m.status === 'no_result').every((m) => m.cause === 'cancelled')).toBe(true);
    expect(await run.ledger.field('accepted')).toBe(String(groups * size));
  });

  it('that was told to drain opens and queues nothing more; another one takes over and does the rest', async (context) => {
    const [groups, size] = [6, 2];
    const run = await openRun(context, { groups, size, inFlight: 4 });
    const first = await run.drive('first');
    await until('the window is open', () => first.ticks.at(-1)?.open === 4);
    first.driver.drain();
    expect(await first.end).toEqual({ drained: true });
    run.work(2, accept);
    await expect(run.drive('second')).rejects.toThrow(/driven by first/);
    const second = await run.drive('second', 'first');
    await run.collect();
    expect(await second.end).toEqual({ state: 'done' });
    await expectAllOnce(run, groups, size);
  });

  it('whose lease another one took ends at its next round, and plans nothing', async (context) => {
    const run = await openRun(context, { groups: 2, size: 1, inFlight: 1 });
    const first = await run.drive('first');
    await until('it drives', () => first.ticks.length > 0);
    const second = await run.drive('second', 'first');
    expect(await first.end).toEqual({ lost: true });
    run.work(1, accept);
    await run.collect();
    expect(await second.end).toEqual({ state: 'done' });
  });

  it('queues a member again whose job was lost with the queue', async (context) => {
    const run = await openRun(context, { groups: 1, size: 1 });
    const { ticks } = await run.drive();
    await until('it is queued', () => ticks.at(-1)?.open === 1 && ticks.length > 3);
    await run.queue.obliterate();
    // As if the ten seconds were over.
    await run.server.redis.zadd(`${runKey(run.run)}:live`, 0, '0-0');
    let begun = 0;
    run.work(1, async (attempt, worker) => {
      begun++;
      await accept(attempt, worker);
    });
    await run.collect();
    expect(begun).toBe(1);
  });

  it('rides through a Redis that is killed and comes back: everything is accepted once', {
    timeout: 150_000,
  }, async (context) => {
    const own = await startRedis();
    context.onTestFinished(() => own.close());
    const [groups, size] = [25, 4];
    const run = await openRun(context, { groups, size, inFlight: 16, server: own });
    run.work(4, accept);
    const { end } = await run.drive();
    for (const kill of [20, 50]) {
      await until('some are accepted', async () => Number(await run.ledger.field('accepted')) >= kill, { everyMs: 5 });
      await own.restart();
    }
    await until('all groups are closed', async () => Number(await run.ledger.field('closed')) === groups, {
      withinMs: 120_000,
    });
    await run.collect();
    expect(await end).toEqual({ state: 'done' });
    await expectAllOnce(run, groups, size);
  });
});
