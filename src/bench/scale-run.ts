// One run of a given size in processes and on a Redis of its own: what each process spends on a member, what each holds, what
// Redis holds while it is at work and afterwards, and what lies in the store. Beside it, on the same Redis and with as many
// workers, plain BullMQ doing nothing.

import type { ChildProcess } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from '../shared/redis/client.ts';
import { openRedis } from '../shared/redis/connect.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import { cpuUs, peakBytes } from './children.ts';
import { Arms, heapOf } from './queue-arms.ts';
import { BenchRedis, usedBy } from './redis.ts';

/** Before anything is measured: code is compiled, connections are there. */
const WARM_UP = 2_000;
/** A small size is run several times over, so that what is measured is more than the start of a run. */
const AT_LEAST = 5_000;
const NO_OPS = 10_000;
const CONCURRENCY = 16;
const SAMPLE_MS = 25;
const LOOK_MS = 2;
const REALM = 'scale';

export interface ScaleArm {
  members: number;
  workers: number;
  store: 'folder' | 's3';
}

/** In microseconds for one member; null where the system does not tell. */
export type CpuOfMember = Record<'producer' | 'workers' | 'collector' | 'redis', number | null>;

export interface ScaleSample {
  per_s: number;
  plain_per_s: number;
  cpu_us: CpuOfMember;
  plain_cpu_us: { producer: number | null; workers: number | null; redis: number | null };
  memory: {
    /** Heap and buffers when the run is over, all that can be collected being gone. */
    producer: number;
    collector: number;
    /** Of the first one. */
    worker: number;
    peak_producer: number | null;
    peak_collector: number | null;
    /** Of the largest worker. */
    peak_worker: number | null;
  };
  redis: { peak: number; after: number; keys_left: number };
  stored: { objects: number; bytes: number };
}

interface Parts {
  producer: ChildProcess;
  collector: ChildProcess;
  workers: ChildProcess[];
  raw: ChildProcess;
  sinks: ChildProcess[];
}

export async function scaleRun(arm: ScaleArm, store: string | null, signal: AbortSignal): Promise<ScaleSample> {
  const server = await BenchRedis.start();
  const arms = new Arms(server, store);
  const redis = openRedis({ options: { path: server.socket }, address: 'bench', embedded: true });
  const address = store ?? `${server.folder}/store`;
  // Interrupted, it does not wait for a run's end: whoever waits for a process hears that it is gone.
  const cut = (): void => arms.end();
  signal.addEventListener('abort', cut, { once: true });
  try {
    const parts = await start(arms, arm.workers);
    await arms.drive(parts.producer, arms.newRun(), WARM_UP);
    await noOps(parts.raw, redis, WARM_UP, signal);
    signal.throwIfAborted();
    const farm = await farmArm(arm, arms, parts, { redis, pid: server.pid, address });
    signal.throwIfAborted();
    return { ...farm, ...(await plainArm(parts, { redis, pid: server.pid, signal })) };
  } finally {
    signal.removeEventListener('abort', cut);
    redis.disconnect();
    arms.end();
    await server.close();
    if (store !== null) await emptied(store);
  }
}

async function start(arms: Arms, workers: number): Promise<Parts> {
  const producer = await arms.start('producer', REALM, CONCURRENCY);
  const collector = await arms.start('collector', REALM, CONCURRENCY);
  const raw = await arms.start('raw-producer', REALM, CONCURRENCY);
  const parts: Parts = { producer, collector, workers: [], raw, sinks: [] };
  for (let i = 0; i < workers; i++) {
    parts.workers.push(await arms.start('worker', REALM, CONCURRENCY));
    parts.sinks.push(await arms.start('raw-worker', REALM, CONCURRENCY));
  }
  return parts;
}

async function farmArm(
  { members }: ScaleArm,
  arms: Arms,
  { producer, collector, workers }: Parts,
  { redis, pid, address }: { redis: Redis; pid: number | undefined; address: string },
): Promise<Omit<ScaleSample, 'plain_per_s' | 'plain_cpu_us'>> {
  const times = Math.max(1, Math.ceil(AT_LEAST / members));
  const all = { producer: [producer], workers, collector: [collector], redis: [{ pid }] };
  const [held, keys, stored] = [await usedBy(redis), await redis.dbsize(), await storedIn(address)];
  const before = cpuOf(all);
  const peak = watchPeak(redis);
  let ms = 0;
  for (let i = 0; i < times; i++) ms += (await arms.drive(producer, arms.newRun(), members)).doneMs;
  const after = cpuOf(all);
  const top = await peak();
  const one = (name: keyof typeof all): number | null => less(after[name], before[name], members * times);
  const now = await storedIn(address);
  return {
    per_s: (1_000 * members * times) / ms,
    cpu_us: { producer: one('producer'), workers: one('workers'), collector: one('collector'), redis: one('redis') },
    memory: {
      producer: await heapOf(producer),
      collector: await heapOf(collector),
      worker: await heapOf(workers[0] as ChildProcess),
      peak_producer: peakBytes(producer.pid),
      peak_collector: peakBytes(collector.pid),
      peak_worker: Math.max(...workers.map((worker) => peakBytes(worker.pid) ?? 0)) || null,
    },
    redis: {
      peak: top - held,
      after: ((await usedBy(redis)) - held) / times,
      keys_left: ((await redis.dbsize()) - keys) / times,
    },
    stored: { objects: (now.objects - stored.objects) / times, bytes: (now.bytes - stored.bytes) / times },
  };
}

async function plainArm(
  { raw, sinks }: Parts,
  { redis, pid, signal }: { redis: Redis; pid: number | undefined; signal: AbortSignal },
): Promise<Pick<ScaleSample, 'plain_per_s' | 'plain_cpu_us'>> {
  const all = { producer: [raw], workers: sinks, redis: [{ pid }] };
  const before = cpuOf(all);
  const ms = await noOps(raw, redis, NO_OPS, signal);
  const after = cpuOf(all);
  const one = (name: keyof typeof all): number | null => less(after[name], before[name], NO_OPS);
  return {
    plain_per_s: (1_000 * NO_OPS) / ms,
    plain_cpu_us: { producer: one('producer'), workers: one('workers'), redis: one('redis') },
  };
}

/** Milliseconds from the first job's adding until none waits or is at work, whoever of the workers took it. */
async function noOps(raw: ChildProcess, redis: Redis, count: number, signal: AbortSignal): Promise<number> {
  const queue = `bull:${REALM}`;
  const last = Number(await redis.get(`${queue}:id`)) + count;
  const began = performance.now();
  raw.send({ add: count });
  for (;;) {
    const [id, waiting, active] = await Promise.all([
      redis.get(`${queue}:id`),
      redis.llen(`${queue}:wait`),
      redis.llen(`${queue}:active`),
    ]);
    if (Number(id) >= last && waiting + active === 0) return performance.now() - began;
    signal.throwIfAborted();
    await wait(LOOK_MS);
  }
}

function cpuOf<Name extends string>(
  all: Record<Name, readonly { pid?: number | undefined }[]>,
): Record<Name, number | null> {
  const sums = Object.entries<readonly { pid?: number | undefined }[]>(all).map(([name, processes]) => {
    const each = processes.map(({ pid }) => cpuUs(pid));
    return [name, each.includes(null) ? null : each.reduce((sum: number, us) => sum + (us ?? 0), 0)] as const;
  });
  return Object.fromEntries(sums) as Record<Name, number | null>;
}

function less(after: number | null, before: number | null, over: number): number | null {
  return after === null || before === null ? null : (after - before) / over;
}

/** Looks again and again until it is asked for the most that it saw. */
function watchPeak(redis: Redis): () => Promise<number> {
  let [most, going] = [0, true];
  const loop = (async () => {
    while (going) {
      // An interrupted bench takes the connection away.
      most = Math.max(most, await usedBy(redis).catch(() => 0));
      await wait(SAMPLE_MS);
    }
  })();
  return async () => {
    going = false;
    await loop;
    return most;
  };
}

async function storedIn(address: string): Promise<{ objects: number; bytes: number }> {
  const store = await openStoreAddress(address);
  let [objects, sum] = [0, 0];
  for await (const { bytes } of store.list('')) {
    objects++;
    sum += bytes;
  }
  await store.close();
  return { objects, bytes: sum };
}

async function emptied(address: string): Promise<void> {
  const store = await openStoreAddress(address);
  for await (const { key } of store.list('')) await store.delete(key);
  await store.close();
}
