// What a live member takes in Redis, and what Redis, producer and collector hold after 1,000 members and after 10,000 of one
// run, the window being the same: what has been done must leave nothing.

import { setTimeout as wait } from 'node:timers/promises';
import { MemberLedger } from '../shared/ledger/member-ledger.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { announce } from '../shared/presence.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openRedis } from '../shared/redis/connect.ts';
import { figureOf } from './figures.ts';
import { type Arms, GROUP, heapOf, LIVE } from './queue-arms.ts';
import { type BenchRedis, usedBy } from './redis.ts';

export const EARLY = 1_000;
export const LATE = 10_000;
const SAMPLE_MS = 20;
/** Members before and after each mark at which heaps are looked at too: a look may find a shard in the making, or none. */
const BESIDE = [-400, -200, 0, 200, 400] as const;
const REALM = 'bench-memory';
const LIVE_BYTES_GOAL = 4_096;

export interface Growth {
  early_bytes: number;
  late_bytes: number;
  ratio: number;
}

export interface QueueMemory {
  redis_bytes_per_live_member: number;
  goal: number;
  /** Late over early, the window being equal. */
  redis: Growth;
  producer: Growth;
  collector: Growth;
}

export async function queueMemory(arms: Arms, server: BenchRedis): Promise<QueueMemory> {
  const place = { options: { path: server.socket }, address: 'bench', embedded: true };
  const redis = openRedis(place);
  const used = (): Promise<number> => usedBy(redis);
  try {
    const live = await liveBytes(arms, redis, used);
    const [producer, collector] = [await arms.start('producer', REALM, 16), await arms.start('collector', REALM, 16)];
    await arms.start('worker', REALM, 16);
    // Code that is compiled and loaded by the first members is no member's.
    await arms.drive(producer, arms.newRun(), EARLY);
    const samples: { accepted: number; redis: number }[] = [];
    const heaps: { accepted: number; producer: number; collector: number }[] = [];
    const marks = [EARLY, LATE].flatMap((at) => BESIDE.map((by) => at + by));
    const run = arms.newRun();
    const over = arms.drive(producer, run, EARLY + LATE, false, marks, async ({ mark, heap }) => {
      heaps.push({ accepted: mark, producer: heap, collector: await heapOf(collector) });
    });
    let going = true;
    void over.finally(() => {
      going = false;
    });
    const ledger = new RunLedger(redis, run);
    while (going) {
      samples.push({ accepted: Number(await ledger.field('accepted')), redis: await used() });
      await wait(SAMPLE_MS);
    }
    await over;
    const growth = <Sample extends { accepted: number }>(all: Sample[], of: (sample: Sample) => number): Growth => {
      const around = (at: number): number =>
        figureOf('', all.filter(({ accepted }) => Math.abs(accepted - at) <= EARLY / 2).map(of)).median;
      const [early, late] = [around(EARLY), around(LATE)];
      return { early_bytes: early, late_bytes: late, ratio: late / early };
    };
    return {
      redis_bytes_per_live_member: live,
      goal: LIVE_BYTES_GOAL,
      redis: growth(samples, (sample) => sample.redis),
      producer: growth(heaps, (sample) => sample.producer),
      collector: growth(heaps, (sample) => sample.collector),
    };
  } finally {
    redis.disconnect();
    arms.end();
  }
}

/** Ledger and job of a member that is at work, over as many as a run may have in flight. */
async function liveBytes(arms: Arms, redis: Redis, used: () => Promise<number>): Promise<number> {
  const slots = { light: LIVE };
  const seat = await announce(redis, { role: 'rollout', realm: 'bench-live', worker: 'none', slots });
  const producer = await arms.start('producer', 'bench-live', 1);
  const run = arms.newRun();
  const ledger = new RunLedger(redis, run);
  const before = await used();
  void arms.drive(producer, run, 2 * LIVE).catch(() => {});
  while (Number(await ledger.field('out:light')) < LIVE) await wait(SAMPLE_MS);
  const worker = new MemberLedger(redis, 'none');
  for (let i = 0; i < LIVE; i++)
    await worker.begin({ run, group: Math.floor(i / GROUP), member: i % GROUP }, 'rollout');
  const bytes = ((await used()) - before) / LIVE;
  await seat.stop();
  arms.end();
  return bytes;
}
