// What the nodes of a cluster say: that they are nodes, that every slot is served; then each master is asked.

import { Cluster, type Redis } from 'ioredis';
import { missingError } from '../errors.ts';
import { infoField } from './nodes.ts';
import type { RedisPlace } from './place.ts';
import { ASK_MS, asked, ONCE, telling } from './probe.ts';
import { redisRefusal } from './refusal.ts';
import { type CheckedRedis, checkServers } from './server-check.ts';

/** Any of the nodes may be away; that the cluster serves every slot is for one that answers to say. */
export async function checkCluster(
  place: RedisPlace,
  nodes: readonly { host: string; port: number }[],
): Promise<CheckedRedis> {
  let refusal: unknown = null;
  for (const { host, port } of nodes) {
    const at = { ...place, address: `${place.address} (node ${host}:${port})` };
    try {
      await asked(at, { ...place.options, host, port }, (redis) => askNode(redis, at));
      refusal = null;
      break;
    } catch (error) {
      refusal = telling(refusal, error);
    }
  }
  if (refusal !== null) throw refusal;
  const { lazyConnect, retryStrategy: _, ...options } = ONCE;
  const cluster = new Cluster([...nodes], {
    lazyConnect,
    clusterRetryStrategy: () => null,
    slotsRefreshTimeout: ASK_MS,
    ...(place.options.tls ? { dnsLookup: (name, answer) => answer(null, name) } : {}),
    redisOptions: { ...place.options, ...options },
  });
  cluster.on('error', () => {});
  try {
    await cluster.connect();
    const servers = await Promise.all(
      cluster.nodes('master').map(async (redis) => {
        const where = `${redis.options.host}:${redis.options.port}, a node of ${place.address}`;
        return { redis, where, info: await redis.info() };
      }),
    );
    return await checkServers(place, servers, `a cluster of ${servers.length} masters`);
  } catch (error) {
    const cause = error instanceof Error && 'lastNodeError' in error ? error.lastNodeError : error;
    throw redisRefusal(place.address, cause ?? error);
  } finally {
    cluster.disconnect();
  }
}

async function askNode(redis: Redis, place: RedisPlace): Promise<void> {
  if (infoField(await redis.info('cluster'), 'cluster_enabled') !== '1')
    throw missingError(
      'redis_not_cluster',
      `Redis at ${place.address} is not a node of a cluster`,
      'a single server is redis://HOST:PORT',
    );
  const state = String(await redis.call('CLUSTER', 'INFO'));
  if (infoField(state, 'cluster_state') === 'ok') return;
  throw missingError(
    'redis_cluster_down',
    `the cluster at ${place.address} does not serve: ${infoField(state, 'cluster_slots_ok') || 0} of 16384 slots have a master that answers`,
    'redis-cli --cluster check HOST:PORT tells what it lacks',
  );
}
