// `farm bench verify`: what asking the verifier adds to a training step. One stub that takes 50 ms a call, 32 x 8 queries,
// 2 s of other step time; the ideal (calls x latency / concurrency) and the Python library's own path in the same rounds.
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { missingError } from '../shared/errors.js';
import { ask } from '../shared/redis/embedded.js';
import { said } from './children.js';
import { measure } from './figures.js';
import { GatewayBench, SAMPLES } from './gateway.js';
import { startPython } from './python-arm.js';
export const QUERIES = 256;
export const LATENCY_MS = 50;
export const STEP_MS = 2_000;
const BATCH = 50;
export const ROUNDS = 7;
export const LIBRARY = 'ambertrace-rlvr, 256 in its own process';
const CONF = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));
const askedSchema = z.strictObject({ ms: z.number(), cpuMs: z.number(), verdicts: z.int() });
const countsSchema = z.object({ items: z.int(), calls: z.int() });
export async function benchVerify(signal) {
    const bench = await Bench.start();
    try {
        return await bench.run(signal);
    }
    finally {
        await bench.close();
    }
}
class Bench {
    folder;
    redis;
    socket;
    children = [];
    askers = new Map();
    next = 0;
    asked = 0;
    distinct = 0;
    cpuMs = 0;
    answered = 0;
    gateway = null;
    libraries = [];
    constructor(folder) {
        this.folder = folder;
        this.socket = path.join(folder, 'redis.sock');
        this.redis = spawn('redis-server', [CONF, '--port', '0', '--unixsocket', this.socket, '--dir', folder], {
            stdio: 'ignore',
        });
        this.redis.on('error', () => { });
    }
    static async start() {
        const bench = new Bench(mkdtempSync(path.join(tmpdir(), 'farm-bench-')));
        for (let i = 0; (await ask(bench.socket, 'PING', 500)) === null; i++) {
            if (i > 100)
                throw missingError('redis_start', 'redis-server did not start', './farm demo installs it');
            await wait(50);
        }
        return bench;
    }
    async run(signal) {
        const batch = await this.upstream('batch');
        const single = await this.upstream('single');
        const quick = await this.upstream('batch', 0);
        const echo = await this.port('echo-child.js', []);
        const python = await this.library(batch);
        const direct = await this.library(quick);
        const notes = 'missing' in python ? [`the Python library was not measured: ${python.missing}`] : [];
        const ours = (mode, concurrency, duplicates, processes) => {
            const distinct = QUERIES * (1 - duplicates);
            const calls = mode === 'batch' ? Math.ceil(distinct / BATCH) : distinct;
            return {
                name: `farm, ${mode}, ${concurrency} at once, ${duplicates * 100}% equal, ${processes} process${processes > 1 ? 'es' : ''}`,
                ideal: Math.ceil(calls / concurrency) * LATENCY_MS,
                round: () => this.round(mode === 'batch' ? batch : single, concurrency, duplicates, processes),
            };
        };
        const arms = [];
        for (const concurrency of [16, 64])
            for (const duplicates of [0, 0.5])
                arms.push(ours('single', concurrency, duplicates, 1));
        arms.push(ours('single', 64, 0, 3), ours('batch', 16, 0, 1), ours('batch', 16, 0.5, 1), ours('batch', 16, 0, 3));
        if (!('missing' in python)) {
            const theirs = (name, threads, viaBatch, ideal) => {
                const round = () => python.round({ threads, batch: viaBatch, count: QUERIES, from: this.ids(QUERIES) });
                arms.push({ name: `ambertrace-rlvr, ${name}`, ideal, round });
            };
            theirs('16 threads, single calls (its defaults)', 16, false, (QUERIES / 16) * LATENCY_MS);
            theirs('64 threads, single calls', 64, false, (QUERIES / 64) * LATENCY_MS);
            theirs('batch path', 16, true, LATENCY_MS);
        }
        const gateway = await GatewayBench.start({
            folder: this.folder,
            socket: this.socket,
            redisPid: this.redis.pid,
            upstream: quick,
            echo,
            ids: (count) => this.ids(count),
        });
        this.gateway = gateway;
        const served = gateway.arms();
        const library = 'missing' in direct
            ? []
            : [
                {
                    name: LIBRARY,
                    round: () => direct.round({ threads: 16, batch: true, count: SAMPLES, from: this.ids(SAMPLES) }),
                },
            ];
        const all = await measure([...arms, ...served, ...library], ROUNDS, signal);
        const figures = all.slice(0, arms.length);
        const alone = all.find((figure) => figure.arm === LIBRARY);
        const rows = figures.map((figure, i) => {
            const ideal = arms[i]?.ideal ?? Number.NaN;
            return {
                arm: figure.arm,
                ideal_ms: ideal,
                figure,
                over_ideal: figure.median / ideal,
                share_of_step: figure.median / (STEP_MS + figure.median),
            };
        });
        return {
            rows,
            cpu_ms_per_query: this.cpuMs / this.answered,
            upstream: { asked: this.asked, distinct: this.distinct },
            gateway: gateway.rows(all),
            library_samples_per_s: alone ? (SAMPLES / alone.median) * 1000 : null,
            notes,
        };
    }
    /** One step's queries over `processes` processes: the time until the last has its answers. */
    async round(baseUrl, concurrency, duplicates, processes) {
        const children = await this.askersOf(baseUrl, concurrency, processes);
        await counts(baseUrl);
        const distinct = QUERIES * (1 - duplicates);
        const first = this.ids(distinct);
        const ids = Array.from({ length: QUERIES }, (_, i) => first + (i % distinct));
        const epoch = `round-${first}`;
        const answers = children.map(async (child, i) => {
            const answer = said(child);
            child.send({ epoch, ids: ids.filter((_, at) => at % processes === i) });
            return askedSchema.parse(await answer);
        });
        const results = await Promise.all(answers);
        const { items } = await counts(baseUrl);
        this.asked += items;
        this.distinct += distinct;
        this.cpuMs += results.reduce((n, r) => n + r.cpuMs, 0);
        this.answered += results.reduce((n, r) => n + r.verdicts, 0);
        return Math.max(...results.map((r) => r.ms));
    }
    ids(count) {
        const first = this.next;
        this.next += count;
        return first;
    }
    askersOf(baseUrl, concurrency, processes) {
        const key = `${baseUrl} ${concurrency} ${processes}`;
        let found = this.askers.get(key);
        if (!found) {
            const setting = JSON.stringify({ socket: this.socket, baseUrl, concurrency });
            found = Promise.all(Array.from({ length: processes }, async () => {
                const child = this.fork('asker-child.js', [setting]);
                await said(child);
                return child;
            }));
            this.askers.set(key, found);
        }
        return found;
    }
    async library(baseUrl) {
        const started = await startPython(baseUrl);
        if (!('missing' in started))
            this.libraries.push(started);
        return started;
    }
    upstream(mode, latencyMs = LATENCY_MS) {
        return this.port('upstream-child.js', [String(latencyMs), mode]);
    }
    /** Where a child listens. */
    async port(file, args) {
        return `http://127.0.0.1:${z.object({ port: z.int() }).parse(await said(this.fork(file, args))).port}`;
    }
    fork(file, args) {
        const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
            stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        });
        this.children.push(child);
        return child;
    }
    async close() {
        await this.gateway?.close();
        for (const library of this.libraries)
            library.close();
        for (const child of this.children)
            child.kill('SIGKILL');
        this.redis.kill('SIGKILL');
        await once(this.redis, 'exit').catch(() => { });
        rmSync(this.folder, { recursive: true, force: true });
    }
}
/** What was asked since the last look. */
async function counts(baseUrl) {
    return countsSchema.parse(await (await fetch(`${baseUrl}/counts`)).json());
}
