// Closed groups as lines, from any cursor on. However many follow a run, one tailer a run looks for what is new and
// keeps the latest lines; a follower that is behind catches up by a reader of its own and then lives on those. An empty
// line is the heartbeat; a gateway that stops ends each follow with a record that says so.
import { setTimeout as wait } from 'node:timers/promises';
import { CallerGone } from './exchange.js';
import { HttpProblem } from './problem.js';
const LOOK_MS = 200;
const KEPT_LINES = 512;
const KEPT_BYTES = 8 * 1024 * 1024;
export class Following {
    tails = new Map();
    openReader;
    heartbeatMs;
    ended = new AbortController();
    constructor(openReader, heartbeatMs = 10_000) {
        this.openReader = openReader;
        this.heartbeatMs = heartbeatMs;
    }
    /** Tailers at work, for tests and figures. */
    get tailers() {
        return this.tails.size;
    }
    async serve(exchange, run, after, follow) {
        const reader = await this.openReader(run);
        let seq = 0;
        let last = null;
        if (after !== null) {
            const at = await reader.seqOf(after);
            if ('fault' in at)
                throw new HttpProblem(400, 'cursor', `after: the cursor ${JSON.stringify(after.slice(0, 80))} ${at.fault}`, 'take the "cursor" of a record of this run');
            seq = at.seq;
        }
        exchange.begin(200, 'application/x-ndjson');
        const give = async (row) => {
            await exchange.write(`${row.line}\n`);
            seq = row.seq;
            last = row.line;
        };
        for await (const row of reader.after(seq))
            await give(row);
        if (follow) {
            const tail = this.join(run, reader, seq);
            try {
                await this.live(exchange, tail, () => seq, give);
            }
            finally {
                tail.followers--;
            }
            if (this.ended.signal.aborted && !tail.over)
                await exchange.write(drainRecord(run, last === null ? after : cursorOf(last)));
        }
        exchange.end();
    }
    /** Every follow ends with a record that says so. */
    drain() {
        this.ended.abort();
        for (const tail of this.tails.values())
            for (const wake of tail.wake)
                wake();
    }
    async live(exchange, tail, at, give) {
        let saidAt = performance.now();
        for (;;) {
            if (at() < tail.seq) {
                const first = tail.lines[0];
                const rows = first && first.seq <= at() + 1 ? tail.lines.filter((row) => row.seq > at()) : tail.reader.after(at());
                for await (const row of rows)
                    await give(row);
                saidAt = performance.now();
                continue;
            }
            if (tail.over || tail.broken !== null || this.ended.signal.aborted)
                return;
            if (exchange.gone.aborted)
                throw new CallerGone();
            if (performance.now() - saidAt >= this.heartbeatMs) {
                await exchange.write('\n');
                saidAt = performance.now();
            }
            await woken(tail, exchange.gone, saidAt + this.heartbeatMs - performance.now());
        }
    }
    join(run, reader, seq) {
        let tail = this.tails.get(run);
        if (!tail) {
            tail = { run, reader, seq, over: false, broken: null, lines: [], bytes: 0, followers: 0, wake: new Set() };
            this.tails.set(run, tail);
            void this.look(tail);
        }
        tail.followers++;
        return tail;
    }
    async look(tail) {
        let failures = 0;
        while (!this.ended.signal.aborted && !tail.over) {
            try {
                // Asked first: what closes between the two questions is then read in the next round, not missed.
                const over = await tail.reader.isOver();
                for await (const row of tail.reader.after(tail.seq))
                    keep(tail, row);
                tail.over = over;
                failures = 0;
            }
            catch (error) {
                // Redis or the store may be away for a while; a follower sees heartbeats meanwhile.
                if (++failures > 150)
                    tail.broken = error instanceof Error ? error.message : String(error);
            }
            for (const wake of tail.wake)
                wake();
            if (tail.over || tail.broken !== null)
                break;
            await wait(LOOK_MS, undefined, { signal: this.ended.signal }).catch(() => { });
            if (tail.followers === 0)
                break;
        }
        this.tails.delete(tail.run);
        for (const wake of tail.wake)
            wake();
    }
}
function keep(tail, row) {
    tail.seq = row.seq;
    tail.lines.push(row);
    tail.bytes += row.line.length;
    while (tail.lines.length > KEPT_LINES || (tail.bytes > KEPT_BYTES && tail.lines.length > 1))
        tail.bytes -= tail.lines.shift().line.length;
    for (const wake of tail.wake)
        wake();
}
function woken(tail, gone, ms) {
    return new Promise((resolve) => {
        const done = () => {
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
function cursorOf(line) {
    return JSON.parse(line).cursor;
}
/** `cursor`: where to go on, null from the beginning. */
function drainRecord(run, cursor) {
    return `${JSON.stringify({ event: 'drain', run, cursor, hint: 'the gateway stops; ask again after this cursor' })}\n`;
}
