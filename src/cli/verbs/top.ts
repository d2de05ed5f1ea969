// `farm top`: what is at work now, every second, until it is stopped: each run, and its slowest members with their phase
// and their deadline.

import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { readRun } from '../run-view.ts';
import { people } from './status.ts';

const EVERY_MS = 1_000;

export async function top(): Promise<number> {
  const { redis } = await connectRedis(readConfig());
  const gone = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => gone.abort());
  const screen = process.stdout.isTTY === true;
  try {
    while (!gone.signal.aborted) {
      const all = await Promise.all((await knownRuns(redis, null)).map((run) => readRun(redis, run)));
      const live = all
        .filter((s) => s !== null && s.state !== 'done' && s.state !== 'cancelled')
        .filter((s) => s !== null);
      const text = live.length > 0 ? live.map(people).join('\n') : 'nothing is at work\n';
      process.stdout.write(screen ? `\x1b[H\x1b[2J${text}` : `${text}\n`);
      await wait(EVERY_MS, undefined, { signal: gone.signal }).catch(() => {});
    }
    return EXIT.ok;
  } finally {
    redis.disconnect();
  }
}
