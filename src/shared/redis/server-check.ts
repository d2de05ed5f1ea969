// What each server must be before the farm trusts it with a ledger: new enough, written to, keeping what it has.

import type { Redis } from 'ioredis';
import { messageOf, missingError } from '../errors.ts';
import { infoField } from './nodes.ts';
import type { RedisPlace } from './place.ts';
import { tooOld } from './refusal.ts';

export interface CheckedRedis {
  /** One server, or a cluster's masters. */
  version: string;
  /** `one server`, `master NAME of 3 Sentinels`, …; with replicas. */
  shape: string;
  appendOnly: boolean;
  evicts: string;
  /** What is allowed and unwise, for people. */
  warnings: string[];
}

export interface Asked {
  redis: Redis;
  where: string;
  info: string;
}

export async function checkServers(place: RedisPlace, servers: readonly Asked[], shape: string): Promise<CheckedRedis> {
  for (const { where, info } of servers) checkServer(where, info);
  const first = servers[0] as Asked;
  const replicas = servers.reduce((sum, { info }) => sum + Number(infoField(info, 'connected_slaves') || 0), 0);
  const appendOnly = servers.every(({ info }) => infoField(info, 'aof_enabled') === '1');
  return {
    version: infoField(first.info, 'redis_version'),
    shape: replicas === 0 ? shape : `${shape}, ${replicas} replica${replicas === 1 ? '' : 's'}`,
    appendOnly,
    evicts: infoField(first.info, 'maxmemory_policy'),
    warnings: await warningsOf(place, servers, appendOnly, replicas),
  };
}

function checkServer(where: string, info: string): void {
  const field = (name: string): string => infoField(info, name);
  if (Number.parseInt(field('redis_version'), 10) < 7) throw tooOld(where, field('redis_version'));
  const policy = field('maxmemory_policy');
  if (policy !== '' && policy !== 'noeviction')
    throw missingError(
      'redis_policy',
      `Redis at ${where} may evict keys (maxmemory-policy ${policy}): the ledger would lose members`,
      'set maxmemory-policy noeviction',
    );
  if (field('role') === 'slave')
    throw missingError(
      'redis_replica',
      `Redis at ${where} is a replica and cannot be written`,
      'point REDIS_URL at the primary',
    );
}

async function warningsOf(
  { address, embedded }: RedisPlace,
  servers: readonly Asked[],
  appendOnly: boolean,
  replicas: number,
): Promise<string[]> {
  const warnings: string[] = [];
  if (!appendOnly)
    warnings.push(
      `Redis at ${address} keeps no append-only file: if it ends, its runs are begun anew from their shards`,
    );
  else if ((await Promise.all(servers.map(({ redis }) => fsyncOf(redis)))).some((fsync) => fsync !== 'always'))
    warnings.push(`Redis at ${address} does not run appendfsync always: a crash may lose what was acknowledged`);
  // INFO has the field only where the setting is on.
  const guarded = servers.every(({ info }) => infoField(info, 'min_slaves_good_slaves') !== '');
  if (!embedded && replicas > 0 && !guarded)
    warnings.push(
      `Redis at ${address} has replicas and no min-replicas-to-write: a master that is cut off goes on acknowledging what a failover then loses`,
    );
  return warnings;
}

/** A database that the server does not have is silently the first one, where another farm may be. */
export async function checkDatabase(redis: Redis, place: RedisPlace): Promise<void> {
  const wanted = place.options.db ?? 0;
  if (wanted === 0) return;
  try {
    await redis.select(wanted);
  } catch (error) {
    throw missingError(
      'redis_database',
      `Redis at ${place.address} has no database ${wanted}: ${messageOf(error)}`,
      'name one that it has, /0 for the first',
      error,
    );
  }
}

/** Managed servers refuse CONFIG: then it is not known, and nothing is said. */
async function fsyncOf(redis: Redis): Promise<string> {
  try {
    const answer = (await redis.call('CONFIG', 'GET', 'appendfsync')) as string[];
    return String(answer.flat()[1] ?? 'always');
  } catch {
    return 'always';
  }
}
