// Whether a Redis is fuller than producers may make it: nothing new is opened above this share of maxmemory.

import type { Redis } from 'ioredis';

const SHARE = 0.6;

export async function isAboveHighWater(redis: Redis): Promise<boolean> {
  const memory = await redis.info('memory');
  const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
  return figure('maxmemory') > 0 && figure('used_memory') > SHARE * figure('maxmemory');
}
