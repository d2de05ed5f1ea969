// Connections to Redis: the one that REDIS_URL names (a server, a master that Sentinels name, a cluster), or the embedded
// one of the data folder. Checked once (check.ts); everything else in the house gets its connections from here.

import { randomBytes } from 'node:crypto';
import { Cluster, Redis as Single } from 'ioredis';
import type { Config } from '../config.ts';
import { FarmError } from '../errors.ts';
import { type Host, readRedisUrl } from './address.ts';
import { checkRedis } from './check.ts';
import type { Redis } from './client.ts';
import { ensureEmbedded } from './embedded.ts';
import { clockOf } from './nodes.ts';
import { type Connection, placeOf, type RedisPlace } from './place.ts';
import { redisRefusal } from './refusal.ts';
import type { CheckedRedis } from './server-check.ts';

export type { Connection, RedisPlace } from './place.ts';

/** A command line must not wait for ever for a Redis that went away; a role may, its attempts' leases end by themselves. */
const COMMAND_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const EMBEDDED_TRIES = 5;
/** A command that a cluster turns away (its master died, a slot moves) is tried again: for as long as a patient one waits. */
const AGAIN_MS = 100;
const AGAIN_WITHOUT_END = 1_000_000_000;

export interface ConnectedRedis {
  redis: Redis;
  place: RedisPlace;
  /** Random, kept in this Redis: on the labels of this farm's containers. */
  farmId: string;
  checked: CheckedRedis;
  /** What is allowed and unwise, for people. */
  warnings: string[];
}

/** Where Redis is; starts the embedded one if need be. Throws FarmError (exit 3). */
export async function locateRedis(config: Config): Promise<RedisPlace> {
  if (config.redisUrl === null) {
    const socket = await ensureEmbedded(config);
    return { options: { path: socket }, address: `embedded Redis of ${config.dataDir}`, embedded: true };
  }
  return placeOf(readRedisUrl(config.redisUrl));
}

/** A connection that waits through restarts and failovers: for roles and queues. */
export function openRedis(place: RedisPlace, extra: Connection = {}): Redis {
  const retry = (times: number): number => Math.min(50 * times, 1_000);
  const patient: Connection = {
    maxRetriesPerRequest: null,
    enableReadyCheck: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
  };
  const options = { ...place.options, ...patient, ...extra };
  const redis =
    place.cluster === undefined
      ? new Single({ retryStrategy: retry, ...options } as Connection)
      : new PatientCluster(place.cluster, options, retry);
  // Without a listener a lost connection would end the process; reconnecting is ioredis's work, reporting the caller's.
  redis.on('error', () => {});
  return redis;
}

/** Also what waits for a cluster that is away as a whole has its deadline, where commands have one. */
class PatientCluster extends Cluster {
  constructor(nodes: readonly Host[], options: Connection, retry: (times: number) => number) {
    super([...nodes], {
      clusterRetryStrategy: retry,
      maxRedirections: AGAIN_WITHOUT_END,
      retryDelayOnFailover: AGAIN_MS,
      retryDelayOnClusterDown: AGAIN_MS,
      slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
      // The nodes' own names must reach TLS, which compares them with their certificates.
      ...(options.tls ? { dnsLookup: (name, answer) => answer(null, name) } : {}),
      redisOptions: options,
    });
  }

  override sendCommand(...args: Parameters<Cluster['sendCommand']>): ReturnType<Cluster['sendCommand']> {
    const ms = this.options.redisOptions?.commandTimeout;
    if (ms !== undefined) args[0].setTimeout(ms);
    return super.sendCommand(...args);
  }
}

/** Connects and checks that this Redis can hold a ledger. Throws FarmError (exit 3) with what is wrong and how to mend it. */
export async function connectRedis(
  config: Config,
  options: { patient: boolean } = { patient: false },
): Promise<ConnectedRedis> {
  for (let tries = 1; ; tries++) {
    try {
      return await connectOnce(config, options.patient);
    } catch (error) {
      const unreachable = error instanceof FarmError && error.code === 'redis_unreachable';
      // The embedded one may have been on its way out when we found it: the next look starts it anew.
      if (config.redisUrl !== null || !unreachable || tries === EMBEDDED_TRIES) throw error;
    }
  }
}

async function connectOnce(config: Config, patient: boolean): Promise<ConnectedRedis> {
  const place = await locateRedis(config);
  const checked = await checkRedis(place);
  const redis = openRedis(place, patient ? {} : { commandTimeout: COMMAND_TIMEOUT_MS });
  try {
    const farmId = await farmIdOf(redis);
    // Whoever may not run scripts is told so here, and not in the middle of a run.
    await clockOf(redis, 'farm:id');
    if (place.embedded) reviveKeeper(redis, config);
    return { redis, place, farmId, checked, warnings: checked.warnings };
  } catch (error) {
    redis.disconnect();
    throw redisRefusal(place.address, error);
  }
}

/** An embedded Redis whose keeper was killed has nobody to start it again but its clients; the lock lets one of them win. */
function reviveKeeper(redis: Redis, config: Config): void {
  let reviving = false;
  redis.on('reconnecting', () => {
    if (reviving) return;
    reviving = true;
    ensureEmbedded(config).then(
      () => {
        reviving = false;
      },
      () => {
        reviving = false;
      },
    );
  });
}

/** Written once: a Redis that is full refuses to be written, and can still be looked at. */
async function farmIdOf(redis: Redis): Promise<string> {
  const known = await redis.get('farm:id');
  if (known !== null) return known;
  await redis.set('farm:id', randomBytes(8).toString('hex'), 'NX');
  return (await redis.get('farm:id')) as string;
}
