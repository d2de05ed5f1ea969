import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { Driver, type DriverEnd } from '../../src/producer/driver.ts';
import { Fleet, windowOf } from '../../src/shared/fleet/fleet.ts';
import { MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../src/shared/ledger/run-ledger.ts';
import { writeSettings } from '../../src/shared/ledger/run-settings.ts';
import { announce } from '../../src/shared/presence.ts';
import { consume, MemberQueue } from '../../src/shared/queue.ts';
import { groupPlan } from '../support/group-plan.ts';
import { completedWith, memberOf, settingsWith } from '../support/outcomes.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };
const SLOTS = 4;
/** No run is forgotten because the machine stood still: but for those that are to be. */
const [LEASE_MS, SHORT_LEASE_MS] = [600_000, 2_000];
const WINDOW = windowOf('rollout', SLOTS);
const log = pino({ level: 'silent' });

interface Begun {
  run: string;
  end(): Promise<unknown>;
}

/** One fleet for many runs, with a worker whose members end when the test says so. */
async function openRealm({ onTestFinished }: TestContext, realm: string, leaseMs = LEASE_MS) {
  const { redis, place } = server;
  const seat = await announce(redis, { role: 'rollout', realm, worker: realm, slots: { rollout: SLOTS } });
  const ledger = new MemberLedger(redis, realm);
  const begun: Begun[] = [];
  const atWork: Begun[] = [];
  const consumer = consume(
    place,
    realm,
    'rollout',
    SLOTS,
    async (job) => {
      const attempt = await ledger.begin(memberOf(job), 'rollout');
      if ('refused' in attempt) return;
      await new Promise<void>((resolve) => {
        const end = async (): Promise<void> => {
          await ledger.accept(attempt, completedWith(attempt.member, 1), []);
          resolve();
        };
        const member = { run: attempt.run, end };
        begun.push(member);
        atWork.push(member);
      });
    },
    () => {},
  );
  onTestFinished(async () => {
    await seat.stop();
    await consumer.close();
  });
  const drive = async (
    run: string,
    groups: number,
    size: number,
  ): Promise<{ driver: Driver; end: Promise<DriverEnd>; queue: MemberQueue }> => {
    const settings = settingsWith({ groups, size, inFlight: 512, pausedS: 3600 });
    const runLedger = new RunLedger(redis, run);
    await runLedger.open({
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
    const driven = await runLedger.drive(run);
    if (!('epoch' in driven)) throw new Error('driven by another');
    const queue = new MemberQueue(place, realm);
    const fleet = new Fleet(redis, place, realm, leaseMs);
    const plan = groupPlan(groups, PLACE);
    const owner = run;
    const options = { redis, queue, fleet, settings, groups, groupSize: size, plan, owner, log };
    const driver = new Driver(run, driven.epoch, options);
    const end = driver.drive();
    onTestFinished(async () => {
      driver.drain();
      await end;
      fleet.close();
      await queue.close();
    });
    return { driver, end, queue };
  };
  /** The member that is at work for the longest ends, and another begins: one turn. */
  const turn = async (): Promise<void> => {
    const before = begun.length;
    await atWork.shift()?.end();
    await until('another member begins', () => begun.length > before, { everyMs: 2 });
  };
  return { begun, atWork, drive, turn };
}

describe.concurrent('many runs, one fleet', () => {
  it('a small run begins within two windows of turns, however much a large one has left', async (context) => {
    const { begun, drive, turn } = await openRealm(context, 'small-and-large');
    const { queue } = await drive('large', 2_000, 8);
    await until('the slots are full', () => begun.length === SLOTS);
    await until('no more waits than belongs to the window', async () => {
      const { rollout_waiting = 0, rollout_active = 0 } = await queue.counts();
      return rollout_waiting + rollout_active === WINDOW;
    });
    for (let i = 0; i < 10; i++) await turn();
    const since = begun.length;
    await drive('small', 1, 4);
    const ofSmall = (): number => begun.filter((b) => b.run === 'small').length;
    await until('it asks', async () => (await server.redis.hkeys('farm:{fleet small-and-large}:rollout')).length > 2);
    while (ofSmall() < 4 && begun.length - since < 100) await turn();
    const first = begun.findIndex((b) => b.run === 'small') - since;
    expect(first).toBeLessThanOrEqual(WINDOW);
    expect(begun.length - since).toBeLessThanOrEqual(2 * WINDOW);
  });

  it('several large runs have equal shares of the turns', async (context) => {
    const { begun, drive, turn } = await openRealm(context, 'large-ones');
    for (const run of ['one', 'two', 'three']) await drive(run, 500, 4);
    await until('the slots are full', () => begun.length === SLOTS);
    await until('all ask', async () => (await server.redis.hkeys('farm:{fleet large-ones}:rollout')).length === 4);
    for (let i = 0; i < 20; i++) await turn();
    const from = begun.length;
    for (let i = 0; i < 90; i++) await turn();
    const shares = ['one', 'two', 'three'].map((run) => begun.slice(from).filter((b) => b.run === run).length);
    expect(Math.min(...shares)).toBeGreaterThanOrEqual(20);
  });

  it('what a run leaves is the others’ at once: no place stands empty while somebody asks', async (context) => {
    const { begun, atWork, drive, turn } = await openRealm(context, 'leaving', SHORT_LEASE_MS);
    const { driver, end } = await drive('leaves', 500, 4);
    await drive('stays', 500, 4);
    await until('the slots are full', () => begun.length === SLOTS);
    driver.drain();
    expect(await end).toEqual({ drained: true });
    for (let i = 0; i < 3 * WINDOW; i++) {
      await turn();
      expect(atWork).toHaveLength(SLOTS);
    }
    expect(begun.slice(-WINDOW).every((b) => b.run === 'stays')).toBe(true);
  });
});
