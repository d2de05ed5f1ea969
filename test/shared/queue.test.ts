import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { MemberLane } from '../../src/shared/lane.ts';
import { consume, type MemberJob, MemberQueue } from '../../src/shared/queue.ts';
import { privateRealm, SHARED_REALM } from '../../src/shared/realm.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await server.redis.flushall();
});

function queue(realm: string): MemberQueue {
  const made = new MemberQueue(server.place, realm);
  closing.push(() => made.close());
  return made;
}

function taker(
  realm: string,
  work: (job: MemberJob) => Promise<void> = async () => {},
  concurrency = 4,
  lane: MemberLane = 'rollout',
) {
  const jobs: MemberJob[] = [];
  const errors: string[] = [];
  const consumer = consume(
    server.place,
    realm,
    lane,
    concurrency,
    async (job) => {
      jobs.push(job);
      await work(job);
    },
    (error) => errors.push(String(error)),
  );
  closing.push(() => consumer.close());
  return { jobs, errors, consumer };
}
const rollout = (member: number, next = 1) => ({ group: 0, member, lane: 'rollout' as const, next });
const numberOf = ({ members }: MemberJob): number => members[0]?.[1] ?? -1;
const job = (member: number): MemberJob => ({ run: 'r', stage: 'rollout', members: [[0, member]] });

describe('a queue', () => {
  it('carries light members some at a time, each once, and sandboxed ones alone', async () => {
    const { jobs } = taker(SHARED_REALM, async () => {}, 4, 'light');
    const q = queue(SHARED_REALM);
    const all = Array.from({ length: 20 }, (_, m) => ({ ...rollout(m), lane: 'light' as const }));
    await q.add('r', all);
    await until('all are taken', () => jobs.flatMap((j) => j.members).length === 20);
    expect(jobs.map((j) => j.members.length).sort()).toEqual([4, 8, 8]);
    expect(new Set(jobs.flatMap((j) => j.members.map(([, m]) => m))).size).toBe(20);
    const alone = taker(SHARED_REALM);
    await q.add('r', [rollout(0), rollout(1)]);
    await until('both are taken', () => alone.jobs.length === 2);
  });

  it('carries a light member by itself that is to be alone, under one id however it stands among others', async () => {
    const { jobs } = taker(SHARED_REALM, async () => {}, 4, 'light');
    const q = queue(SHARED_REALM);
    const all = Array.from({ length: 10 }, (_, m) => ({ ...rollout(m), lane: 'light' as const, alone: m % 5 === 3 }));
    await q.add('r', all);
    await until('all are taken', () => jobs.flatMap((j) => j.members).length === 10);
    expect(jobs.map((j) => j.members.map(([, m]) => m)).sort((a, b) => a.length - b.length)).toEqual([
      [3],
      [8],
      [0, 1, 2, 4, 5, 6, 7, 9],
    ]);
  });

  it('carries more light members in a job where their lane is quick, and never so many that a job is long', async () => {
    const { jobs } = taker(SHARED_REALM, async () => {}, 1, 'light');
    const q = queue(SHARED_REALM);
    const all = Array.from({ length: 150 }, (_, m) => ({ ...rollout(m), lane: 'light' as const }));
    const sizes = () => jobs.splice(0).map((j) => j.members.length);
    const taken = (): boolean => jobs.reduce((n, j) => n + j.members.length, 0) === all.length;
    await q.add('quick', all, 1_000_000);
    await until('all are taken', taken);
    expect(sizes()).toEqual([64, 64, 22]);
    await q.add('middling', all, 500);
    await until('all are taken', taken);
    expect(sizes()).toEqual([40, 40, 40, 30]);
    await q.add('slow', all, 3);
    await until('all are taken', taken);
    expect(Math.max(...sizes())).toBe(8);
  });

  it('carries ids and nothing else, each stage to its own workers', async () => {
    const { jobs } = taker(SHARED_REALM);
    await queue(SHARED_REALM).add('r', [rollout(0), { ...rollout(1), lane: 'verify' }, rollout(2)]);
    await until('both are taken', () => jobs.length === 2);
    expect(jobs.sort((a, b) => numberOf(a) - numberOf(b))).toEqual([job(0), job(2)]);
  });

  it('holds a member once for each begin that it is queued for, however often it is added', async () => {
    const q = queue(SHARED_REALM);
    for (let i = 0; i < 3; i++) await q.add('r', [rollout(0)]);
    await q.add('r', [rollout(0, 2)]);
    const { jobs } = taker(SHARED_REALM);
    await until('all are taken', async () => jobs.length === 2 && (await q.counts()).rollout_active === 0);
    expect(await q.counts()).toMatchObject({ rollout_waiting: 0, rollout_active: 0 });
  });

  it('takes a member again that was taken before: nothing of a finished job stays', async () => {
    const q = queue(SHARED_REALM);
    const { jobs } = taker(SHARED_REALM);
    await q.add('r', [rollout(0)]);
    await until('it is taken and over', async () => jobs.length === 1 && (await q.counts()).rollout_active === 0);
    await q.add('r', [rollout(0)]);
    await until('it is taken again', () => jobs.length === 2);
  });

  it('of a private realm is not seen by the workers of another', async () => {
    const shared = taker(SHARED_REALM);
    const other = taker(privateRealm('s'));
    const own = taker(privateRealm('r'));
    await queue(privateRealm('r')).add('r', [rollout(0)]);
    await queue(SHARED_REALM).add('t', [rollout(1)]);
    await until('both are taken', () => own.jobs.length === 1 && shared.jobs.length === 1);
    expect(own.jobs).toEqual([job(0)]);
    expect(shared.jobs).toEqual([{ ...job(1), run: 't' }]);
    expect(other.jobs).toEqual([]);
  });

  it('is gone from Redis when it is obliterated, though jobs were waiting', async () => {
    const q = queue(privateRealm('r'));
    await q.add('r', [rollout(0), rollout(1)]);
    await q.obliterate();
    expect(await server.redis.keys('*run.r*')).toEqual([]);
  });
});

describe('a consumer', () => {
  it('goes on when its work throws, and tells it', async () => {
    const { jobs, errors } = taker(SHARED_REALM, async (taken) => {
      if (numberOf(taken) === 0) throw new Error('a bug');
    });
    await queue(SHARED_REALM).add('r', [rollout(0), rollout(1)]);
    await until('both are taken', () => jobs.length === 2 && errors.length === 1);
    expect(errors).toEqual(['Error: a bug']);
  });

  it('drops a job that is not ours, and tells it', async () => {
    const q = queue(SHARED_REALM);
    const { jobs, errors } = taker(SHARED_REALM);
    await q.add('r', [{ ...rollout(0), group: -1 }, rollout(1)]);
    await until('one is told, one taken', () => jobs.length === 1 && errors.length === 1);
    expect(jobs).toEqual([job(1)]);
    expect(errors[0]).toMatch(/not ours/);
  });

  it('works on no more at once than it was told to', async () => {
    let now = 0;
    let most = 0;
    const gates: (() => void)[] = [];
    const { jobs } = taker(
      SHARED_REALM,
      async () => {
        most = Math.max(most, ++now);
        await new Promise<void>((resolve) => gates.push(resolve));
        now--;
      },
      2,
    );
    await queue(SHARED_REALM).add(
      'r',
      Array.from({ length: 6 }, (_, m) => rollout(m)),
    );
    for (let done = 0; done < 6; done++) {
      await until('one more is at work', () => gates.length > 0);
      gates.shift()?.();
    }
    await until('all are taken', () => jobs.length === 6);
    expect(most).toBe(2);
  });

  it('that drains waits for what is at work and takes nothing new', async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { jobs, consumer } = taker(SHARED_REALM, () => held, 1);
    await queue(SHARED_REALM).add('r', [rollout(0), rollout(1)]);
    await until('one is at work', () => jobs.length === 1);
    let drained = false;
    const draining = consumer.drain().then(() => {
      drained = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(drained).toBe(false);
    release();
    await draining;
    expect(jobs).toHaveLength(1);
  });
});
