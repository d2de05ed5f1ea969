// A trainer that follows the run's results over the gateways: it keeps the last cursor, goes to the next gateway when one
// goes away, and must see every closed group once and in order.
import http from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
const RETRY_MS = 200;
/** Heartbeats come every ten seconds: a line that is silent for longer is dead. */
const SILENT_MS = 25_000;
const recordSchema = z.looseObject({ cursor: z.string(), group: z.int() });
const drainSchema = z.looseObject({ event: z.literal('drain') });
export class Follower {
    groups = [];
    cursors = [];
    /** Lines that were neither a record nor a heartbeat nor a drain's word. */
    odd = [];
    connections = 0;
    run;
    ports;
    over = new AbortController();
    loop;
    constructor(run, ports) {
        this.run = run;
        this.ports = ports;
        this.loop = this.follow();
    }
    /** Waits until it has `groups`, or for so long; then it follows no more. */
    async end(groups, withinMs) {
        const deadline = performance.now() + withinMs;
        while (this.groups.length < groups && performance.now() < deadline)
            await wait(100);
        this.over.abort();
        await this.loop;
    }
    async follow() {
        while (!this.over.signal.aborted) {
            const port = this.ports[this.connections++ % this.ports.length];
            await this.read(port).catch(() => { });
            await wait(RETRY_MS, undefined, { signal: this.over.signal }).catch(() => { });
        }
    }
    read(port) {
        const after = this.cursors.at(-1);
        const query = after === undefined ? 'follow=1' : `after=${encodeURIComponent(after)}&follow=1`;
        const url = `http://127.0.0.1:${port}/v1/runs/${this.run}/results?${query}`;
        return new Promise((resolve, reject) => {
            const request = http.get(url, { signal: this.over.signal, timeout: SILENT_MS, agent: false }, (response) => {
                if (response.statusCode !== 200) {
                    response.resume();
                    // 404 and 503 while a gateway comes up are no words about the run.
                    resolve();
                    return;
                }
                let rest = '';
                response.setEncoding('utf8');
                response.on('data', (text) => {
                    const lines = (rest + text).split('\n');
                    rest = lines.pop();
                    for (const line of lines)
                        this.take(line);
                });
                response.once('end', resolve);
                response.once('error', reject);
            });
            request.once('timeout', () => request.destroy(new Error('silent')));
            request.once('error', reject);
        });
    }
    take(line) {
        if (line.trim() === '')
            return;
        let value;
        try {
            value = JSON.parse(line);
        }
        catch {
            this.odd.push(line.slice(0, 300));
            return;
        }
        const record = recordSchema.safeParse(value);
        if (record.success) {
            this.groups.push(record.data.group);
            this.cursors.push(record.data.cursor);
        }
        else if (!drainSchema.safeParse(value).success)
            this.odd.push(line.slice(0, 300));
    }
}
