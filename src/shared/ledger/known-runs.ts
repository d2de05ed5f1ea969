// The runs that this Redis knows, with the realm in which each is worked on. An index only: the run's own hash is the truth.

import type { Redis } from '../redis/client.ts';
import { mastersOf } from '../redis/nodes.ts';
import { runKey } from './script.ts';

const KEY = 'farm:runs';

/** Remembers a run, or that it is worked on in another realm now. */
export async function rememberRun(redis: Redis, run: string, realm: string): Promise<void> {
  await redis.hset(KEY, run, realm);
}

/** Where a run is worked on; null if it is not known. */
export function realmOf(redis: Redis, run: string): Promise<string | null> {
  return redis.hget(KEY, run);
}

/** Names, in code-point order; of one realm, or all. */
export async function knownRuns(redis: Redis, realm: string | null): Promise<string[]> {
  const all = await redis.hgetall(KEY);
  return Object.keys(all)
    .filter((run) => realm === null || all[run] === realm)
    .sort();
}

/** Forgets a run and deletes everything that the ledger has of it. */
export async function forgetRun(redis: Redis, run: string): Promise<void> {
  const pattern = `${runKey(run).replace(/[[\]*?\\]/g, '\\$&')}:*`;
  // They lie on one node of a cluster; which one may change while this is at work.
  for (const master of mastersOf(redis)) {
    let cursor = '0';
    do {
      const [next, keys] = await master.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000);
      cursor = next;
      if (keys.length > 0) await redis.unlink(...keys);
    } while (cursor !== '0');
  }
  await redis.hdel(KEY, run);
}
