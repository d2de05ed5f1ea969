// How full Redis is: of a cluster, its fullest master. Above the high-water mark nothing new is opened, so that what is at
// work finds room to end; at the top Redis refuses whatever may be refused, and the queue's own scripts are among that.

import type { Redis } from './client.ts';
import { infoField, infoOfMasters } from './nodes.ts';

/** Share of maxmemory above which nothing new is opened. */
const HIGH_WATER = 0.6;

export interface RedisMemory {
  usedBytes: number;
  /** 0 for no bound. */
  maxBytes: number;
  aboveHighWater: boolean;
}

export async function readMemory(redis: Redis): Promise<RedisMemory> {
  const masters = (await infoOfMasters(redis, 'memory')).map((info) => {
    const [usedBytes, maxBytes] = [Number(infoField(info, 'used_memory')), Number(infoField(info, 'maxmemory'))];
    return { usedBytes, maxBytes, share: maxBytes > 0 ? usedBytes / maxBytes : 0 };
  });
  const { usedBytes, maxBytes, share } = masters.reduce((fullest, other) =>
    other.share > fullest.share || (other.share === fullest.share && other.usedBytes > fullest.usedBytes)
      ? other
      : fullest,
  );
  return { usedBytes, maxBytes, aboveHighWater: share > HIGH_WATER };
}

/** For people; null while there is room. */
export function sayFull({ usedBytes, maxBytes, aboveHighWater }: RedisMemory): string | null {
  if (!aboveHighWater) return null;
  const mb = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
  const figures = `${mb(usedBytes)} of ${mb(maxBytes)} MB`;
  const full = usedBytes >= maxBytes ? ', and full: what is queued waits for room too' : '';
  return `Redis is above its high-water mark: nothing new is opened (${figures}${full})`;
}
