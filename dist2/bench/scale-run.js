// One run of a given size in processes and on a Redis of its own: what each process spends on a member, what each holds, what
// Redis holds while it is at work and afterwards, and what lies in the store. Beside it, on the same Redis and with as many
// workers, plain BullMQ doing nothing.
import { setTimeout as wait } from 'node:timers/promises';
import { openRedis } from '../shared/redis/connect.js';
import { infoField } from '../shared/redis/nodes.js';
import { openStoreAddress } from '../shared/store/open.js';
import { cpuUs, peakBytes } from './children.js';
import { Arms, heapOf } from './queue-arms.js';
import { BenchRedis } from './redis.js';
/** Before anything is measured: code is compiled, connections are there. */
const WARM_UP = 2_000;
/** A small size is run several times over, so that what is measured is more than the start of a run. */
const AT_LEAST = 5_000;
const NO_OPS = 20_000;
const CONCURRENCY = 16;
const SAMPLE_MS = 25;
const LOOK_MS = 2;
const REALM = 'scale';
export async function scaleRun(arm, store, signal) {
    const server = await BenchRedis.start();
    const arms = new Arms(server, store);
    const redis = openRedis({ options: { path: server.socket }, address: 'bench', embedded: true });
    const address = store ?? `${server.folder}/store`;
    try {
        const parts = await start(arms, arm.workers);
        await arms.drive(parts.producer, arms.newRun(), WARM_UP);
        await noOps(parts.raw, redis, WARM_UP);
        signal.throwIfAborted();
        const farm = await farmArm(arm, arms, parts, { redis, pid: server.pid, address });
        signal.throwIfAborted();
        return { ...farm, ...(await plainArm(parts, { redis, pid: server.pid })) };
    }
    finally {
        redis.disconnect();
        arms.end();
        await server.close();
        if (store !== null)
            await emptied(store);
    }
}
async function start(arms, workers) {
    const producer = await arms.start('producer', REALM, CONCURRENCY);
    const collector = await arms.start('collector', REALM, CONCURRENCY);
    const raw = await arms.start('raw-producer', REALM, CONCURRENCY);
    const parts = { producer, collector, workers: [], raw, sinks: [] };
    for (let i = 0; i < workers; i++) {
        parts.workers.push(await arms.start('worker', REALM, CONCURRENCY));
        parts.sinks.push(await arms.start('raw-worker', REALM, CONCURRENCY));
    }
    return parts;
}
async function farmArm({ members }, arms, { producer, collector, workers }, { redis, pid, address }) {
    const times = Math.max(1, Math.ceil(AT_LEAST / members));
    const all = { producer: [producer], workers, collector: [collector], redis: [{ pid }] };
    const [held, keys, stored] = [await usedBy(redis), await redis.dbsize(), await storedIn(address)];
    const before = cpuOf(all);
    const peak = watchPeak(redis);
    let ms = 0;
    for (let i = 0; i < times; i++)
        ms += (await arms.drive(producer, arms.newRun(), members)).doneMs;
    const after = cpuOf(all);
    const top = await peak();
    const one = (name) => less(after[name], before[name], members * times);
    const now = await storedIn(address);
    return {
        per_s: (1_000 * members * times) / ms,
        cpu_us: { producer: one('producer'), workers: one('workers'), collector: one('collector'), redis: one('redis') },
        memory: {
            producer: await heapOf(producer),
            collector: await heapOf(collector),
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
async function plainArm({ raw, sinks }, { redis, pid }) {
    const all = { producer: [raw], workers: sinks, redis: [{ pid }] };
    const before = cpuOf(all);
    const ms = await noOps(raw, redis, NO_OPS);
    const after = cpuOf(all);
    const one = (name) => less(after[name], before[name], NO_OPS);
    return {
        plain_per_s: (1_000 * NO_OPS) / ms,
        plain_cpu_us: { producer: one('producer'), workers: one('workers'), redis: one('redis') },
    };
}
/** Milliseconds from the first job's adding until none waits or is at work, whoever of the workers took it. */
async function noOps(raw, redis, count) {
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
        if (Number(id) >= last && waiting + active === 0)
            return performance.now() - began;
        await wait(LOOK_MS);
    }
}
function cpuOf(all) {
    const sums = Object.entries(all).map(([name, processes]) => {
        const each = processes.map(({ pid }) => cpuUs(pid));
        return [name, each.includes(null) ? null : each.reduce((sum, us) => sum + (us ?? 0), 0)];
    });
    return Object.fromEntries(sums);
}
function less(after, before, over) {
    return after === null || before === null ? null : (after - before) / over;
}
async function usedBy(redis) {
    return Number(infoField(await redis.info('memory'), 'used_memory'));
}
/** Looks again and again until it is asked for the most that it saw. */
function watchPeak(redis) {
    let [most, going] = [0, true];
    const loop = (async () => {
        while (going) {
            most = Math.max(most, await usedBy(redis));
            await wait(SAMPLE_MS);
        }
    })();
    return async () => {
        going = false;
        await loop;
        return most;
    };
}
async function storedIn(address) {
    const store = await openStoreAddress(address);
    let [objects, sum] = [0, 0];
    for await (const { bytes } of store.list('')) {
        objects++;
        sum += bytes;
    }
    await store.close();
    return { objects, bytes: sum };
}
async function emptied(address) {
    const store = await openStoreAddress(address);
    for await (const { key } of store.list(''))
        await store.delete(key);
    await store.close();
}
