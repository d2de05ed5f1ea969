// A connection that waits for nothing: asks what it came for and goes. Whatever fails is named.

import { Redis } from 'ioredis';
import { FarmError } from '../errors.ts';
import type { Connection, RedisPlace } from './place.ts';
import { redisRefusal, tlsRefusal } from './refusal.ts';
import { type TlsFiles, tlsObjection } from './tls.ts';

export const ASK_MS = 5_000;
export const ONCE = {
  lazyConnect: true,
  maxRetriesPerRequest: 0,
  retryStrategy: () => null,
  connectTimeout: ASK_MS,
  commandTimeout: ASK_MS,
} as const;

/** Connects, asks, and goes; whatever fails is named. */
export async function asked<T>(place: RedisPlace, to: Connection, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis({ ...to, ...ONCE } as Connection);
  let fault: Error | null = null;
  redis.on('error', (error: Error) => {
    fault ??= error;
  });
  try {
    await redis.connect();
    return await ask(redis);
  } catch (error) {
    const refusal = redisRefusal(place.address, fault ?? error);
    const { host, port, tls } = to;
    if (refusal.code !== 'redis_unreachable' || tls === undefined || host === undefined || port === undefined)
      throw refusal;
    const objection = await tlsObjection({ host, port }, tls as TlsFiles);
    throw objection === null ? refusal : tlsRefusal(place.address, objection);
  } finally {
    redis.disconnect();
  }
}

/** Of what several of them said: that nobody is there says least. */
export function telling(before: unknown, now: unknown): unknown {
  return before instanceof FarmError && before.code !== 'redis_unreachable' ? before : now;
}
