// Connections to Redis: the one that REDIS_URL names, or the embedded one of the data folder. Checks once that it
// can hold a ledger: version 7, no eviction. Everything else in the house gets its connections from here.

import { randomBytes } from 'node:crypto';
import { Redis, type RedisOptions } from 'ioredis';
import type { Config } from '../config.ts';
import { FarmError, messageOf, missingError } from '../errors.ts';
import { ensureEmbedded } from './embedded.ts';

/** ioredis's options, less the one that its own constructor takes apart. */
export type Connection = Omit<RedisOptions, 'replyMapping'>;

/** A command line must not wait for ever for a Redis that went away; a role may, its attempts' leases end by themselves. */
const COMMAND_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const EMBEDDED_TRIES = 5;

export interface RedisPlace {
  /** For BullMQ and for roles: where to connect. */
  options: Connection;
  /** For messages: no password in it. */
  address: string;
  embedded: boolean;
}

export interface ConnectedRedis {
  redis: Redis;
  place: RedisPlace;
  /** Random, kept in this Redis: on the labels of this farm's containers. */
  farmId: string;
  /** What is allowed and unwise, for people. */
  warnings: string[];
}

/** Where Redis is; starts the embedded one if need be. Throws FarmError (exit 3). */
export async function locateRedis(config: Config): Promise<RedisPlace> {
  if (config.redisUrl === null) {
    const socket = await ensureEmbedded(config);
    return { options: { path: socket }, address: `embedded Redis of ${config.dataDir}`, embedded: true };
  }
  return { ...placeOf(config.redisUrl), embedded: false };
}

/** A connection that waits through restarts: for roles and queues. */
export function openRedis(place: RedisPlace, extra: Connection = {}): Redis {
  const patient: Connection = {
    maxRetriesPerRequest: null,
    enableReadyCheck: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    retryStrategy: (times) => Math.min(50 * times, 1_000),
  };
  const redis = new Redis({ ...place.options, ...patient, ...extra } as Connection);
  // Without a listener a lost connection would end the process; reconnecting is ioredis's work, reporting the caller's.
  redis.on('error', () => {});
  return redis;
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
  const once: Connection = {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: CONNECT_TIMEOUT_MS,
  };
  const probe = new Redis({ ...place.options, ...once } as Connection);
  let fault: Error | null = null;
  probe.on('error', (error: Error) => {
    fault = error;
  });
  try {
    await probe.connect();
    const { farmId, warnings } = await checkRedis(probe, place);
    const redis = openRedis(place, patient ? {} : { commandTimeout: COMMAND_TIMEOUT_MS });
    if (place.embedded) reviveKeeper(redis, config);
    return { redis, place, farmId, warnings };
  } catch (error) {
    if (error instanceof FarmError) throw error;
    const why = messageOf(fault ?? error);
    // Before version 6 there was no HELLO.
    if (/unknown command|NOPROTO/i.test(why)) throw tooOld(place, 'older than 6');
    const secretive = /NOAUTH|WRONGPASS|invalid password/i.test(why);
    throw missingError(
      secretive ? 'redis_auth' : 'redis_unreachable',
      secretive
        ? `Redis at ${place.address} refuses the password`
        : `Redis at ${place.address} does not answer: ${why}`,
      secretive ? 'put the right password into REDIS_URL' : 'start it, or unset REDIS_URL to use the embedded one',
      error,
    );
  } finally {
    probe.disconnect();
  }
}

/** A database that the server does not have is silently the first one, where another farm may be. */
async function checkDatabase(redis: Redis, place: RedisPlace): Promise<void> {
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

async function checkRedis(redis: Redis, place: RedisPlace): Promise<{ farmId: string; warnings: string[] }> {
  await checkDatabase(redis, place);
  const info = await redis.info();
  const field = (name: string): string => new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
  if (Number.parseInt(field('redis_version'), 10) < 7) throw tooOld(place, field('redis_version'));
  const policy = field('maxmemory_policy');
  if (policy !== '' && policy !== 'noeviction') {
    throw missingError(
      'redis_policy',
      `Redis at ${place.address} may evict keys (maxmemory-policy ${policy}): the ledger would lose members`,
      'set maxmemory-policy noeviction',
    );
  }
  if (field('role') === 'slave')
    throw missingError(
      'redis_replica',
      `Redis at ${place.address} is a replica and cannot be written`,
      'point REDIS_URL at the primary',
    );
  const warnings: string[] = [];
  if (field('aof_enabled') !== '1')
    warnings.push(
      `Redis at ${place.address} keeps no append-only file: if it ends, its runs are begun anew from their shards`,
    );
  else if ((await fsyncOf(redis)) !== 'always')
    warnings.push(`Redis at ${place.address} does not run appendfsync always: a crash may lose what was acknowledged`);
  return { farmId: await farmIdOf(redis), warnings };
}

/** Written once: a Redis that is full refuses to be written, and can still be looked at. */
async function farmIdOf(redis: Redis): Promise<string> {
  const known = await redis.get('farm:id');
  if (known !== null) return known;
  await redis.set('farm:id', randomBytes(8).toString('hex'), 'NX');
  return (await redis.get('farm:id')) as string;
}

function tooOld(place: RedisPlace, version: string): FarmError {
  return missingError(
    'redis_version',
    `Redis at ${place.address} is version ${version}; 7.0 or newer is needed`,
    'upgrade it, or unset REDIS_URL',
  );
}

/** The address is put together anew: a password can hold whatever a pattern would stop at. */
function placeOf(url: string): { options: Connection; address: string } {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw missingError(
      'redis_url',
      'REDIS_URL is not a URL',
      'it looks like redis://:password@host:6379/0 or rediss://…; in a password, write % @ / # as %25 %40 %2F %23',
    );
  }
  const { protocol, hostname, pathname } = parsed;
  if (!['redis:', 'rediss:', 'unix:'].includes(protocol)) {
    throw missingError(
      'redis_url',
      `REDIS_URL begins with ${protocol}//; redis://, rediss:// and unix:// are known`,
      'it looks like redis://:password@host:6379/0',
    );
  }
  let login: Connection;
  try {
    login = {
      ...(parsed.username ? { username: decodeURIComponent(parsed.username) } : {}),
      ...(parsed.password ? { password: decodeURIComponent(parsed.password) } : {}),
    };
  } catch {
    throw missingError('redis_url', 'REDIS_URL has a name or password that is not percent-encoded', 'write % as %25');
  }
  if (protocol === 'unix:') return { options: { path: pathname }, address: `unix://${pathname}` };
  if (!/^\/?\d*$/.test(pathname)) {
    throw missingError(
      'redis_url',
      'REDIS_URL names a database that is not a number',
      'it looks like redis://:password@host:6379/0; in a password, write / as %2F',
    );
  }
  return {
    options: {
      ...login,
      host: hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
      port: Number(parsed.port || 6379),
      db: Number(pathname.slice(1) || 0),
      ...(protocol === 'rediss:' ? { tls: {} } : {}),
    },
    address: `${protocol}//${parsed.host}${pathname}`,
  };
}
