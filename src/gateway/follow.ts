// Closed groups as lines, from any cursor on. However many follow a run, one tailer a run looks for what is new and
// keeps the latest lines; a follower that is behind catches up by a reader of its own and then lives on those. An empty
// line is the heartbeat; a gateway that stops ends each follow with a record that says so.

import { setTimeout as wait } from 'node:timers/promises';
import type { ResultLine } from '../shared/store/results.ts';
import { CallerGone, type Exchange } from './exchange.ts';
import { HttpProblem } from './problem.ts';

/** One reader of a run's closed groups; `results-reader.ts` of the command line is one. */
export interface RunReader {
  seqOf(cursor: string): Promise<{ seq: number } | { code: string; fault: string; hint: string }>;
  isOver(): Promise<boolean>;
  after(seq: number): AsyncGenerator<ResultLine>;
  stands(given: ResultLine): Promise<boolean>;
}
export type OpenReader = (run: string) => Promise<RunReader>;

const LOOK_MS = 200;
const KEPT_LINES = 512;
const KEPT_BYTES = 8 * 1024 * 1024;

interface Tail {
  readonly run: string;
  readonly reader: RunReader;
  seq: number;
  /** The last that was given. */
  last: ResultLine | null;
  over: boolean;
  broken: string | null;
  lines: ResultLine[];
  bytes: number;
  followers: number;
  wake: Set<() => void>;
}

export class Following {
  private readonly tails = new Map<string, Tail>();
  private readonly openReader: OpenReader;
  private readonly heartbeatMs: number;
  private readonly ended = new AbortController();

  constructor(openReader: OpenReader, heartbeatMs = 10_000) {
    this.openReader = openReader;
    this.heartbeatMs = heartbeatMs;
  }

  /** Tailers at work, for tests and figures. */
  get tailers(): number {
    return this.tails.size;
  }

  async serve(exchange: Exchange, run: string, after: string | null, follow: boolean): Promise<void> {
    const reader = await this.openReader(run);
    let seq = 0;
    let last: ResultLine | null = null;
    if (after !== null) {
      const at = await reader.seqOf(after);
      if ('fault' in at)
        throw new HttpProblem(
          400,
          at.code,
          `after: the cursor ${JSON.stringify(after.slice(0, 80))} ${at.fault}`,
          at.hint,
        );
      seq = at.seq;
    }
    exchange.begin(200, 'application/x-ndjson');
    const give = async (row: ResultLine): Promise<void> => {
      await exchange.write(`${row.line}\n`);
      seq = row.seq;
      last = row;
    };
    for await (const row of reader.after(seq)) await give(row);
    if (follow) {
      const tail = this.join(run, reader, seq, last);
      try {
        await this.live(exchange, tail, () => seq, give);
      } finally {
        tail.followers--;
      }
      if (this.ended.signal.aborted && !tail.over)
        await exchange.write(drainRecord(run, last === null ? after : cursorOf((last as ResultLine).line)));
    }
    exchange.end();
  }

  /** Every follow ends with a record that says so. */
  drain(): void {
    this.ended.abort();
    for (const tail of this.tails.values()) for (const wake of tail.wake) wake();
  }

  private async live(
    exchange: Exchange,
    tail: Tail,
    at: () => number,
    give: (row: ResultLine) => Promise<void>,
  ): Promise<void> {
    let saidAt = performance.now();
    for (;;) {
      if (at() < tail.seq) {
        const first = tail.lines[0];
        const rows =
          first && first.seq <= at() + 1 ? tail.lines.filter((row) => row.seq > at()) : tail.reader.after(at());
        for await (const row of rows) await give(row);
        saidAt = performance.now();
        continue;
      }
      if (tail.over || tail.broken !== null || this.ended.signal.aborted) return;
      if (exchange.gone.aborted) throw new CallerGone();
      if (performance.now() - saidAt >= this.heartbeatMs) {
        await exchange.write('\n');
        saidAt = performance.now();
      }
      await woken(tail, exchange.gone, saidAt + this.heartbeatMs - performance.now());
    }
  }

  private join(run: string, reader: RunReader, seq: number, last: ResultLine | null): Tail {
    let tail = this.tails.get(run);
    if (!tail) {
      tail = { run, reader, seq, last, over: false, broken: null, lines: [], bytes: 0, followers: 0, wake: new Set() };
      this.tails.set(run, tail);
      void this.look(tail);
    }
    tail.followers++;
    return tail;
  }

  private async look(tail: Tail): Promise<void> {
    let failures = 0;
    while (!this.ended.signal.aborted && !tail.over) {
      try {
        // Asked first: what closes between the two questions is then read in the next round, not missed.
        const over = await tail.reader.isOver();
        // Who asks again is told what became of its cursor.
        if (tail.last !== null && !(await tail.reader.stands(tail.last))) {
          tail.broken = 'Redis has lost groups that were given';
          break;
        }
        for await (const row of tail.reader.after(tail.seq)) keep(tail, row);
        tail.over = over;
        failures = 0;
      } catch (error) {
        // Redis or the store may be away for a while; a follower sees heartbeats meanwhile.
        if (++failures > 150) tail.broken = error instanceof Error ? error.message : String(error);
      }
      for (const wake of tail.wake) wake();
      if (tail.over || tail.broken !== null) break;
      await wait(LOOK_MS, undefined, { signal: this.ended.signal }).catch(() => {});
      if (tail.followers === 0) break;
    }
    this.tails.delete(tail.run);
    for (const wake of tail.wake) wake();
  }
}

function keep(tail: Tail, row: ResultLine): void {
  tail.seq = row.seq;
  tail.last = row;
  tail.lines.push(row);
  tail.bytes += row.line.length;
  while (tail.lines.length > KEPT_LINES || (tail.bytes > KEPT_BYTES && tail.lines.length > 1))
    tail.bytes -= (tail.lines.shift() as ResultLine).line.length;
  for (const wake of tail.wake) wake();
}

function woken(tail: Tail, gone: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      tail.wake.delete(done);
      gone.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, Math.max(0, ms));
    tail.wake.add(done);
    gone.addEventListener('abort', done, { once: true });
  });
}

function cursorOf(line: string): string {
  return (JSON.parse(line) as { cursor: string }).cursor;
}

/** `cursor`: where to go on, null from the beginning. */
function drainRecord(run: string, cursor: string | null): string {
  return `${JSON.stringify({ event: 'drain', run, cursor, hint: 'the gateway stops; ask again after this cursor' })}\n`;
}
