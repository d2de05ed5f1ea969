// What a Redis must be before the farm trusts it with a ledger: there, ours to enter, new enough, written to, keeping what
// it has; and of Sentinels and clusters, what their name promises. Asked once, by connections that wait for nothing.

import { missingError } from '../errors.ts';
import { checkCluster } from './cluster-check.ts';
import { infoField } from './nodes.ts';
import type { RedisPlace } from './place.ts';
import { asked } from './probe.ts';
import { checkSentinels } from './sentinel-check.ts';
import { type CheckedRedis, checkDatabase, checkServers } from './server-check.ts';

/** Throws FarmError (exit 3) with what is wrong and how to mend it. */
export async function checkRedis(place: RedisPlace): Promise<CheckedRedis> {
  if (place.cluster !== undefined) return await checkCluster(place, place.cluster);
  if (place.options.sentinels) return await checkSentinels(place);
  return await asked(place, place.options, async (redis) => {
    const info = await redis.info();
    if (infoField(info, 'cluster_enabled') === '1')
      throw missingError(
        'redis_is_cluster',
        `Redis at ${place.address} is a node of a cluster`,
        'REDIS_URL=redis+cluster://HOST:PORT,… names a cluster by some of its nodes',
      );
    await checkDatabase(redis, place);
    return await checkServers(place, [{ redis, where: place.address, info }], 'one server');
  });
}
