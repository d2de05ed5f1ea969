// Says in a process's log that Redis does not answer, since when, and that it does again: commands of a patient connection
// wait without a word, and a Redis that stands still closes no connection. And that it answers slowly, if it does so again and again.

import { setTimeout as wait } from 'node:timers/promises';
import type { Log } from '../log.ts';
import type { Redis } from './client.ts';

const EVERY_MS = 1_000;
const SILENT_MS = 2_000;
const AGAIN_MS = 10_000;
/** An answer that takes so long holds everything up; one of them may be this process's own doing. */
export const SLOW_MS = 80;
const SLOW_ANSWERS = 3;

export function tellSilence(redis: Redis, address: string, log: Log): { stop(): void } {
  const over = new AbortController();
  void watch(redis, address, log, over.signal);
  return { stop: () => over.abort() };
}

async function watch(redis: Redis, address: string, log: Log, over: AbortSignal): Promise<void> {
  const rest = (ms: number): Promise<unknown> => wait(ms, undefined, { signal: over, ref: false }).catch(() => {});
  const seconds = (since: number): number => Number(((performance.now() - since) / 1000).toFixed(1));
  let heardAt = performance.now();
  let toldAt = Number.NEGATIVE_INFINITY;
  let slowToldAt = Number.NEGATIVE_INFINITY;
  let slow = 0;
  while (!over.aborted) {
    // One question at a time: it is answered when Redis is back, however long that takes, or fails.
    const askedAt = performance.now();
    const asked = redis.ping().then(
      () => 'pong' as const,
      () => 'failed' as const,
    );
    let answer: 'pong' | 'failed' | null = null;
    while (answer === null && !over.aborted) {
      answer = await Promise.race([asked, rest(EVERY_MS).then(() => null)]);
      const now = performance.now();
      if (answer === 'pong' || over.aborted || now - heardAt < SILENT_MS || now - toldAt < AGAIN_MS) continue;
      toldAt = now;
      log.warn(
        { redis: address, since_s: seconds(heardAt) },
        'waiting for Redis: nothing is begun until it answers; members at work go on',
      );
    }
    if (answer === 'pong') {
      const ms = Math.round(performance.now() - askedAt);
      slow = ms < SLOW_MS || ms > SILENT_MS ? 0 : slow + 1;
      if (slow >= SLOW_ANSWERS && performance.now() - slowToldAt > AGAIN_MS) {
        slowToldAt = performance.now();
        log.warn({ redis: address, answer_ms: ms }, 'Redis answers slowly: everything waits for it');
      }
      if (toldAt > 0) log.info({ redis: address, silent_s: Math.round(seconds(heardAt)) }, 'Redis answers again');
      heardAt = performance.now();
      toldAt = Number.NEGATIVE_INFINITY;
    }
    await rest(EVERY_MS);
  }
}
