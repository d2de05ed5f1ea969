// What the gateway adds: 256 samples to a real `serve` process over real HTTP, from one caller at once and from 256
// callers with one each, by an upstream that answers at once; beside it a bare echo of the same bodies.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { cpuMs } from './children.js';
export const SAMPLES = 256;
const MAIN = fileURLToPath(new URL('../cli/main.js', import.meta.url));
const READY_MS = 30_000;
const answerSchema = z.object({ rewards: z.array(z.number().nullable()) });
export class GatewayBench {
    gateway;
    redis;
    url;
    echo;
    agent = new http.Agent({ keepAlive: true, maxSockets: SAMPLES });
    used = new Map();
    ids;
    constructor(gateway, url, options) {
        this.gateway = gateway;
        this.url = url;
        this.redis = options.redisPid;
        this.echo = options.echo;
        this.ids = options.ids;
    }
    static async start(options) {
        const config = path.join(options.folder, 'bench.yaml');
        writeFileSync(config, 'domain: {platform_id: 1}\nverifier: {max_concurrency: 16}\n');
        const settings = [
            `REDIS_URL=unix://${options.socket}`,
            `FARM_DATA=${path.join(options.folder, 'data')}`,
            'FARM_API_KEY=',
            'AMBERTRACE_API_KEY=at_bench_0123456789',
            `AMBERTRACE_BASE_URL=${options.upstream}`,
            'LOG_LEVEL=warn',
        ];
        const command = [process.execPath, MAIN, 'serve', '--port', '0', '--config', config];
        const gateway = spawn('env', [...settings, ...command], { stdio: ['ignore', 'pipe', 'ignore'] });
        return new GatewayBench(gateway, await addressOf(gateway), options);
    }
    /** One caller and many, by the gateway and by the echo. */
    arms() {
        return [1, SAMPLES].flatMap((callers) => ['gateway', 'echo'].map((what) => ({
            name: nameOf(what, callers),
            round: () => this.round(what, callers),
        })));
    }
    rows(figures) {
        const of = (name) => figures.find((figure) => figure.arm === name);
        return [1, SAMPLES].flatMap((callers) => ['gateway', 'echo'].flatMap((what) => {
            const figure = of(nameOf(what, callers));
            const echo = of(nameOf('echo', callers));
            if (!figure || !echo)
                return [];
            const used = this.used.get(figure.arm);
            const each = (ms) => what === 'echo' || used === undefined || ms === null || ms === undefined ? null : ms / used.requests;
            return [
                {
                    arm: figure.arm,
                    callers,
                    figure,
                    samples_per_s: (SAMPLES / figure.median) * 1000,
                    requests_per_s: (callers / figure.median) * 1000,
                    gateway_cpu_ms_per_request: each(used?.gateway),
                    redis_cpu_ms_per_request: each(used?.redis),
                    over_echo: what === 'echo' ? null : figure.median / echo.median,
                },
            ];
        }));
    }
    async close() {
        this.agent.destroy();
        this.gateway.kill('SIGKILL');
        if (this.gateway.exitCode === null && this.gateway.signalCode === null)
            await once(this.gateway, 'exit');
    }
    async round(what, callers) {
        const each = SAMPLES / callers;
        const bodies = Array.from({ length: callers }, () => {
            const first = this.ids(each);
            const completions = Array.from({ length: each }, (_, i) => completionOf(first + i));
            return JSON.stringify({ prompts: completions.map(() => 'Classify the applicant.'), completions });
        });
        const before = [cpuMs(this.gateway.pid), cpuMs(this.redis)];
        const began = performance.now();
        const texts = await Promise.all(bodies.map((body) => this.post(what === 'echo' ? this.echo : this.url, body)));
        const ms = performance.now() - began;
        if (what === 'gateway') {
            const [gateway, redis] = [cpuMs(this.gateway.pid), cpuMs(this.redis)].map((now, i) => {
                const then = before[i] ?? null;
                return now === null || then === null ? null : now - then;
            });
            const used = this.used.get(nameOf(what, callers)) ?? { requests: 0, gateway: 0, redis: 0 };
            this.used.set(nameOf(what, callers), {
                requests: used.requests + callers,
                gateway: gateway === null || used.gateway === null ? null : used.gateway + gateway,
                redis: redis === null || used.redis === null ? null : used.redis + redis,
            });
            const rewards = texts.flatMap((text) => answerSchema.parse(JSON.parse(text)).rewards);
            if (rewards.length !== SAMPLES || rewards.includes(null))
                throw new Error('the gateway left samples without a reward');
        }
        return ms;
    }
    post(url, body) {
        return new Promise((resolve, reject) => {
            const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
            const request = http.request(`${url}/v1/score`, { method: 'POST', agent: this.agent, headers }, (response) => {
                const chunks = [];
                response.on('data', (chunk) => chunks.push(chunk));
                response.on('error', reject);
                response.on('end', () => {
                    const text = Buffer.concat(chunks).toString();
                    if (response.statusCode === 200)
                        resolve(text);
                    else
                        reject(new Error(`the gateway answers ${response.statusCode}: ${text.slice(0, 200)}`));
                });
            });
            request.on('error', reject);
            request.end(body);
        });
    }
}
function nameOf(what, callers) {
    return `${what}, ${callers} caller${callers > 1 ? 's' : ''} x ${SAMPLES / callers}`;
}
function completionOf(id) {
    return `<decision>{"classification": "permit", "facts": {"id": ${id}}}</decision>`;
}
/** The first line that it says. */
function addressOf(gateway) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error('the gateway did not start')), READY_MS);
        let text = '';
        gateway.stdout?.on('data', (chunk) => {
            text += chunk.toString();
            const url = /^http:\S+/.exec(text)?.[0];
            if (url === undefined)
                return;
            clearTimeout(timer);
            resolve(url);
        });
        gateway.once('exit', (code) => {
            clearTimeout(timer);
            reject(new Error(`the gateway ended with ${code}`));
        });
    });
}
export function printGateway(rows) {
    const width = Math.max(...rows.map((row) => row.arm.length));
    const ms = (value) => (value === null ? 'not told' : `${value.toFixed(2)} ms`);
    return rows.map((row) => {
        const head = `${row.arm.padEnd(width)}  ${row.samples_per_s.toFixed(0).padStart(6)} samples/s  ${row.requests_per_s.toFixed(1).padStart(8)} requests/s`;
        if (row.over_echo === null)
            return head;
        return `${head}  ${row.over_echo.toFixed(1)}x the echo's time  CPU a request: gateway ${ms(row.gateway_cpu_ms_per_request)}, Redis ${ms(row.redis_cpu_ms_per_request)}`;
    });
}
