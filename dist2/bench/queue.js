// `farm bench queue`: what ledger, window, queue and collector cost. Members a second, end to end, of episodes that do next
// to nothing, beside plain BullMQ doing nothing at the same concurrency in the same rounds on the same Redis; and
// what a live member takes in Redis, producer and collector, after 1,000 members and after 10,000.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { MemberLedger } from '../shared/ledger/member-ledger.js';
import { RunLedger } from '../shared/ledger/run-ledger.js';
import { announce } from '../shared/presence.js';
import { openRedis } from '../shared/redis/connect.js';
import { measure, shown } from './figures.js';
import { BenchRedis } from './redis.js';
const MEMBERS = 4_000;
const GROUP = 8;
const CONCURRENCIES = [16, 64];
const ROUNDS = 5;
/** Where memory is compared: the window is the same at both. */
const EARLY = 1_000;
const LATE = 10_000;
const LIVE = 512;
const SAMPLE_MS = 20;
const GROWTH = 'bench-memory';
const CHILD = fileURLToPath(new URL('queue-child.js', import.meta.url));
const RATIO_GOAL = 0.7;
const LIVE_BYTES_GOAL = 4_096;
const doneSchema = z.strictObject({ ms: z.number(), doneMs: z.number() });
const markSchema = z.strictObject({ mark: z.int(), heap: z.int() });
const heapSchema = z.strictObject({ heap: z.int() });
export async function benchQueue(signal) {
    const bench = new Bench(await BenchRedis.start());
    try {
        const speed = [];
        for (const concurrency of CONCURRENCIES)
            speed.push(await bench.speed(concurrency, signal));
        return { speed, memory: await bench.memory() };
    }
    finally {
        await bench.close();
    }
}
class Bench {
    server;
    children = [];
    runs = 0;
    constructor(server) {
        this.server = server;
    }
    async speed(concurrency, signal) {
        const realm = `bench-${concurrency}`;
        const seat = (part) => this.start(part, realm, concurrency);
        const [producer, raw, sink] = [await seat('producer'), await seat('raw-producer'), await seat('raw-worker')];
        await seat('worker');
        await seat('collector');
        const arms = [
            { name: 'farm', round: async () => (1_000 * MEMBERS) / (await this.run(producer, MEMBERS)).ms },
            { name: 'plain BullMQ', round: async () => (1_000 * MEMBERS) / (await noOps(raw, sink, MEMBERS)) },
        ];
        const [farm, plain] = (await measure(arms, ROUNDS, signal));
        this.end();
        return { concurrency, farm, raw: plain, ratio: farm.median / plain.median, ratio_goal: RATIO_GOAL };
    }
    async memory() {
        const place = { options: { path: this.server.socket }, address: 'bench', embedded: true };
        const redis = openRedis(place);
        const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
        try {
            const live = await this.live(redis, used);
            const [producer, collector] = [
                await this.start('producer', GROWTH, 16),
                await this.start('collector', GROWTH, 16),
            ];
            await this.start('worker', GROWTH, 16);
            const samples = [];
            const heaps = [];
            const run = `bench-${++this.runs}`;
            const over = this.drive(producer, run, EARLY + LATE, [EARLY, LATE], async (mark) => {
                heaps.push({ producer: mark.heap, collector: await heapOf(collector) });
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
            const around = (at) => median(samples.filter((s) => Math.abs(s.accepted - at) <= EARLY / 2).map((s) => s.redis));
            const growth = (early, late) => ({
                early_bytes: early,
                late_bytes: late,
                ratio: late / early,
            });
            const [first, last] = [heaps[0], heaps[1]];
            return {
                redis_bytes_per_live_member: live,
                goal: LIVE_BYTES_GOAL,
                redis: growth(around(EARLY), around(LATE)),
                producer: growth(first?.producer ?? Number.NaN, last?.producer ?? Number.NaN),
                collector: growth(first?.collector ?? Number.NaN, last?.collector ?? Number.NaN),
            };
        }
        finally {
            redis.disconnect();
            this.end();
        }
    }
    /** Ledger and job of a member that is at work, over as many as a run may have in flight. */
    async live(redis, used) {
        const slots = { light: LIVE };
        const seat = await announce(redis, { role: 'rollout', realm: 'bench-live', worker: 'none', slots });
        const producer = await this.start('producer', 'bench-live', 1);
        const run = `bench-${++this.runs}`;
        const ledger = new RunLedger(redis, run);
        const before = await used();
        void this.drive(producer, run, 2 * LIVE, []).catch(() => { });
        while (Number(await ledger.field('out:light')) < LIVE)
            await wait(SAMPLE_MS);
        const worker = new MemberLedger(redis, 'none');
        for (let i = 0; i < LIVE; i++)
            await worker.begin({ run, group: Math.floor(i / GROUP), member: i % GROUP }, 'rollout');
        const bytes = ((await used()) - before) / LIVE;
        await seat.stop();
        this.end();
        return bytes;
    }
    /** A whole run: from its spec to its last closed group. */
    async run(producer, members) {
        return await this.drive(producer, `bench-${++this.runs}`, members, []);
    }
    async drive(producer, run, members, heapAt, onMark = async () => { }) {
        producer.send({ run, spec: this.spec(members), heapAt });
        for (;;) {
            const [answer] = await once(producer, 'message');
            const mark = markSchema.safeParse(answer);
            if (!mark.success)
                return doneSchema.parse(answer);
            await onMark(mark.data);
        }
    }
    spec(members) {
        const file = path.join(this.server.folder, `spec-${members}.json`);
        const tasks = Array.from({ length: members / GROUP }, (_, i) => ({
            id: `t${i}`,
            env: 'guess',
            seed: i,
            config: { low: 1, high: 10, max_guesses: 4 },
        }));
        const policy = { kind: 'scripted', actions: [5] };
        writeFileSync(file, JSON.stringify({ name: 'bench', group_size: GROUP, tasks, policy, limits: { in_flight: LIVE } }));
        return file;
    }
    async start(part, realm, concurrency) {
        const { socket, folder } = this.server;
        const child = fork(CHILD, [JSON.stringify({ part, socket, folder, realm, concurrency })], {
            stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
            execArgv: ['--expose-gc'],
        });
        this.children.push(child);
        await once(child, 'message');
        return child;
    }
    end() {
        for (const child of this.children.splice(0))
            child.kill('SIGKILL');
    }
    async close() {
        this.end();
        await this.server.close();
    }
}
async function heapOf(child) {
    const answer = once(child, 'message');
    child.send({ heap: true });
    return heapSchema.parse((await answer)[0]).heap;
}
/** The time from the first job's adding to the last one's end. */
async function noOps(producer, worker, count) {
    const ready = once(worker, 'message');
    worker.send({ expect: count });
    await ready;
    const over = once(worker, 'message');
    const began = performance.now();
    producer.send({ add: count });
    await over;
    return performance.now() - began;
}
function median(values) {
    return [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}
export function printQueue(result) {
    const { memory } = result;
    const mega = (bytes) => `${(bytes / 2 ** 20).toFixed(2)} MB`;
    const grown = (name, g) => `${name.padEnd(10)} ${mega(g.early_bytes)} after ${EARLY} members, ${mega(g.late_bytes)} after ${LATE}: ${g.ratio.toFixed(2)}x (goal: within 10%)`;
    return [
        `members a second, end to end: ${MEMBERS} members of one guess in groups of ${GROUP}; median of ${ROUNDS} rounds (spread), arms interleaved`,
        ...result.speed.map((s) => `${s.concurrency} at once: farm ${shown(s.farm, 0)}, plain BullMQ with no-ops ${shown(s.raw, 0)}: ${s.ratio.toFixed(2)}x (goal ${s.ratio_goal}x)`),
        `Redis for a live member: ${Math.round(memory.redis_bytes_per_live_member)} bytes (goal ${memory.goal})`,
        grown('Redis', memory.redis),
        grown('producer', memory.producer),
        grown('collector', memory.collector),
        '',
    ].join('\n');
}
