// Says in a role's log that Redis does not answer, since when, and that it does again: commands of a patient connection wait
// without a word, and a Redis that stands still closes no connection.

import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Log } from '../log.ts';

const EVERY_MS = 1_000;
const SILENT_MS = 2_000;
const AGAIN_MS = 10_000;

export function tellSilence(redis: Redis, address: string, log: Log): { stop(): void } {
  const over = new AbortController();
  void watch(redis, address, log, over.signal);
  return { stop: () => over.abort() };
}

async function watch(redis: Redis, address: string, log: Log, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const asked = performance.now();
    let answered = false;
    let toldAt = Number.NEGATIVE_INFINITY;
    // One question at a time: it is answered when Redis is back, however long that takes.
    const answer = redis.ping().then(
      () => {
        answered = true;
      },
      () => {},
    );
    for (;;) {
      await Promise.race([answer, wait(SILENT_MS, undefined, { signal: over, ref: false }).catch(() => {})]);
      if (answered || over.aborted) break;
      const now = performance.now();
      if (now - asked < SILENT_MS) break;
      if (now - toldAt < AGAIN_MS) continue;
      toldAt = now;
      const since = Number(((now - asked) / 1000).toFixed(1));
      log.warn(
        { redis: address, since_s: since },
        'waiting for Redis: nothing is begun until it answers; members at work go on',
      );
    }
    if (answered && toldAt > 0)
      log.info({ redis: address, silent_s: Math.round((performance.now() - asked) / 1000) }, 'Redis answers again');
    await wait(EVERY_MS, undefined, { signal: over, ref: false }).catch(() => {});
  }
}
