// One process under measure: of the farm its producer, rollout worker or collector; of the baseline a producer or a worker
// of plain BullMQ with nothing around it. Each does what a message says and answers with what it took.

import { setImmediate as turn } from 'node:timers/promises';
import { Queue, Worker } from 'bullmq';
import { z } from 'zod';
import { Driver } from '../producer/driver.ts';
import { openRun } from '../producer/open-run.ts';
import { readConfig } from '../shared/config.ts';
import { Fleet } from '../shared/fleet/fleet.ts';
import { openLog } from '../shared/log.ts';
import { processIdentity } from '../shared/process-identity.ts';
import { MemberQueue } from '../shared/queue.ts';
import { openRedis } from '../shared/redis/connect.ts';
import { readSpec } from '../shared/spec/reader.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import { startCollectWorker } from '../workers/collect/worker.ts';
import type { RoleContext } from '../workers/role.ts';
import { createSubprocessDriver } from '../workers/rollout/sandbox/subprocess.ts';
import { startRolloutWorker } from '../workers/rollout/worker.ts';

const seatSchema = z.strictObject({
  part: z.enum(['producer', 'worker', 'collector', 'raw-producer', 'raw-worker']),
  socket: z.string(),
  folder: z.string(),
  realm: z.string(),
  concurrency: z.int().positive(),
  store: z.string().nullable().default(null),
});
const orderSchema = z.union([
  z.strictObject({ run: z.string(), spec: z.string(), heapAt: z.array(z.int()) }),
  z.strictObject({ add: z.int() }),
  z.strictObject({ expect: z.int() }),
  z.strictObject({ heap: z.literal(true) }),
]);
const BULK = 1_000;

const seat = seatSchema.parse(JSON.parse(process.argv[2] ?? ''));
const { realm, concurrency } = seat;
const place = { options: { path: seat.socket }, address: 'bench', embedded: true };
const config = readConfig({ FARM_DATA: seat.folder, ...(seat.store === null ? {} : { FARM_STORE: seat.store }) });
const log = openLog(config, 'bench', 'error');
const redis = openRedis(place);
const say = (answer: unknown): void => void process.send?.(answer);

/** Bytes on the heap and in buffers after everything that can be collected was. */
function heap(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function drive(run: string, specFile: string, heapAt: number[]): Promise<void> {
  const began = performance.now();
  const read = await readSpec(specFile, config);
  if (!read.ok || read.kind !== 'run') throw new Error('not a run');
  const store = await openStoreAddress(config.store);
  const owner = processIdentity();
  const opened = await openRun({
    run,
    redis,
    spec: read.spec,
    source: read.source,
    store,
    realm,
    owner,
    key: null,
  });
  const { groups, groupSize } = opened.settings.plan;
  const queue = new MemberQueue(place, realm);
  const fleet = new Fleet(redis, place, realm);
  let closedMs = 0;
  const marks = [...heapAt];
  const driver = new Driver(run, opened.epoch, {
    redis,
    queue,
    fleet,
    settings: opened.settings,
    groups,
    groupSize,
    plan: opened.plan,
    owner,
    log,
    onTick: (tick) => {
      if (tick.closed === groups && closedMs === 0) closedMs = performance.now() - began;
      if (tick.accepted < (marks[0] ?? Number.POSITIVE_INFINITY)) return;
      marks.shift();
      say({ mark: tick.accepted, heap: heap() });
    },
  });
  await driver.drive();
  say({ ms: closedMs, doneMs: performance.now() - began });
  await queue.close();
  fleet.close();
  await store.close();
}

function context(): RoleContext {
  const worker = `${seat.part}-${process.pid}`;
  return { config, redis, place, farmId: 'bench', realm, worker, slots: { light: concurrency }, log };
}

async function start(): Promise<(order: z.infer<typeof orderSchema>) => Promise<void>> {
  const connection = { path: seat.socket };
  // What one collection lets go of frees more, a moment later.
  const reportHeap = async (): Promise<void> => {
    for (const _ of [1, 2]) {
      heap();
      await turn();
    }
    say({ heap: heap() });
  };
  switch (seat.part) {
    case 'producer':
      return async (order) => ('run' in order ? drive(order.run, order.spec, order.heapAt) : reportHeap());
    case 'worker':
      await startRolloutWorker(context(), createSubprocessDriver(), async () => new Set());
      return reportHeap;
    case 'collector':
      await startCollectWorker(context(), null);
      return reportHeap;
    case 'raw-producer': {
      const queue = new Queue(realm, { connection });
      return async (order) => {
        if (!('add' in order)) return;
        const job = { name: 'noop', data: {}, opts: { removeOnComplete: true, removeOnFail: true } };
        for (let left = order.add; left > 0; left -= BULK)
          await queue.addBulk(Array.from({ length: Math.min(BULK, left) }, () => job));
      };
    }
    case 'raw-worker': {
      let left = 0;
      const worker = new Worker(realm, async () => {}, { connection, concurrency });
      worker.on('completed', () => {
        if (--left === 0) say({ over: true });
      });
      return async (order) => {
        if (!('expect' in order)) return;
        left = order.expect;
        say({ expecting: left });
      };
    }
  }
}

const obey = await start();
process.on('message', (message) => void obey(orderSchema.parse(message)));
process.on('disconnect', () => process.exit(0));
say({ ready: true });
