// `farm top`: what is at work now, every second, until it is stopped: each run, and its slowest members with their phase
// and their deadline. A Redis that goes away is what it waits for then, and it says so.

import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.ts';
import { EXIT, messageOf } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { unreadable } from '../../shared/ledger/run-status.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { unlessAborted, within } from '../../shared/within.ts';
import { readRun } from '../run-view.ts';
import { people, slowRedis } from './status.ts';

const EVERY_MS = 1_000;
/** Less than the other commands': a live view shows soon that it is none. */
const ANSWER_MS = 2_000;
const VIEW_MS = 8_000;

export async function top(): Promise<number> {
  const { redis, place } = await connectRedis(readConfig());
  const gone = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => gone.abort());
  const screen = process.stdout.isTTY === true;
  let silentSince: number | null = null;
  try {
    while (!gone.signal.aborted) {
      const asked = performance.now();
      let text: string;
      try {
        const slow = await answered(slowRedis(redis), ANSWER_MS, gone.signal);
        // One that answers, and slowly, is asked many things.
        text = (await answered(view(redis), VIEW_MS, gone.signal)) + slow;
        silentSince = null;
      } catch (error) {
        if (gone.signal.aborted) break;
        silentSince ??= asked;
        const seconds = ((performance.now() - silentSince) / 1000).toFixed(1);
        text = `waiting for Redis at ${place.address}, since ${seconds} s (${messageOf(error)}); asks again until it is stopped\n`;
      }
      process.stdout.write(screen ? `\x1b[H\x1b[2J${text}` : `${text}\n`);
      await wait(EVERY_MS, undefined, { signal: gone.signal }).catch(() => {});
    }
    return EXIT.ok;
  } finally {
    redis.disconnect();
  }
}

async function answered(asked: Promise<string>, ms: number, signal: AbortSignal): Promise<string> {
  const answer = await unlessAborted(signal, within(asked, ms, null));
  if (answer === null) throw new Error(`no answer for ${ms / 1000} s`);
  return answer;
}

async function view(redis: Parameters<typeof readRun>[0]): Promise<string> {
  const all = await Promise.all(
    (await knownRuns(redis, null)).map((run) => readRun(redis, run).catch(unreadable(run))),
  );
  const live = all.filter((s) => s !== null && s.state !== 'done' && s.state !== 'cancelled').filter((s) => s !== null);
  return live.length > 0 ? live.map(people).join('\n') : 'nothing is at work\n';
}
