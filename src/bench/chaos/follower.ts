// A trainer that follows the run's results over the gateways: it keeps the last cursor, goes to the next gateway when one
// goes away, and must see every closed group once and in order.

import http from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';

const RETRY_MS = 200;
/** Heartbeats come every ten seconds: a line that is silent for longer is dead. */
const SILENT_MS = 25_000;

const recordSchema = z.looseObject({ cursor: z.string(), group: z.int() });
const drainSchema = z.looseObject({ event: z.literal('drain') });

export class Follower {
  readonly groups: number[] = [];
  readonly cursors: string[] = [];
  /** Lines that were neither a record nor a heartbeat nor a drain's word. */
  readonly odd: string[] = [];
  connections = 0;
  rewinds = 0;
  private readonly run: string;
  private readonly ports: readonly number[];
  private readonly over = new AbortController();
  private readonly loop: Promise<void>;

  constructor(run: string, ports: readonly number[]) {
    this.run = run;
    this.ports = ports;
    this.loop = this.follow();
  }

  /** Waits until it has `groups`, or for so long; then it follows no more. */
  async end(groups: number, withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (this.groups.length < groups && performance.now() < deadline) await wait(100);
    this.over.abort();
    await this.loop;
  }

  private async follow(): Promise<void> {
    while (!this.over.signal.aborted) {
      const port = this.ports[this.connections++ % this.ports.length] as number;
      await this.read(port).catch(() => {});
      await wait(RETRY_MS, undefined, { signal: this.over.signal }).catch(() => {});
    }
  }

  private read(port: number): Promise<void> {
    const after = this.cursors.at(-1);
    const query = after === undefined ? 'follow=1' : `after=${encodeURIComponent(after)}&follow=1`;
    const url = `http://127.0.0.1:${port}/v1/runs/${this.run}/results?${query}`;
    return new Promise((resolve, reject) => {
      const request = http.get(url, { signal: this.over.signal, timeout: SILENT_MS, agent: false }, (response) => {
        if (response.statusCode !== 200) {
          // 404 and 503 while a gateway comes up are no words about the run.
          void text(response).then((said) => {
            if (response.statusCode === 400 && said.includes('"cursor')) this.rewind();
            resolve();
          }, reject);
          return;
        }
        let rest = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          const lines = (rest + piece).split('\n');
          rest = lines.pop() as string;
          for (const line of lines) this.take(line);
        });
        response.once('end', resolve);
        response.once('error', reject);
      });
      request.once('timeout', () => request.destroy(new Error('silent')));
      request.once('error', reject);
    });
  }

  /** The last group is gone, and perhaps more before it: it is asked for the one before. */
  private rewind(): void {
    this.rewinds++;
    this.groups.pop();
    this.cursors.pop();
  }

  private take(line: string): void {
    if (line.trim() === '') return;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.odd.push(line.slice(0, 300));
      return;
    }
    const record = recordSchema.safeParse(value);
    if (record.success) {
      this.groups.push(record.data.group);
      this.cursors.push(record.data.cursor);
    } else if (!drainSchema.safeParse(value).success) this.odd.push(line.slice(0, 300));
  }
}
