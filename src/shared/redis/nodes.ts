// What is asked of the servers themselves, and of no key: of one server that one, of a cluster each master.

import type { Redis as Single } from 'ioredis';
import type { Redis } from './client.ts';

/** Connections to every server that is written to. */
export function mastersOf(redis: Redis): Single[] {
  return 'nodes' in redis ? redis.nodes('master') : [redis];
}

/** INFO of each; what no server says is no answer. */
export async function infoOfMasters(redis: Redis, section: string): Promise<string[]> {
  const masters = mastersOf(redis);
  if (masters.length === 0) throw new Error('no master of the cluster answers');
  return await Promise.all(masters.map((master) => master.info(section)));
}

/** A field of an INFO; '' where it is not there. */
export function infoField(info: string, name: string): string {
  return new RegExp(`^${name}:(.*)$`, 'm').exec(info)?.[1]?.trim() ?? '';
}

const TIME = `#!lua flags=no-writes
local t = redis.call('TIME')
return tostring(t[1] * 1000 + math.floor(t[2] / 1000))`;

/** The clock (ms) of the server that has `key`: those of a cluster have one each. */
export async function clockOf(redis: Redis, key: string): Promise<number> {
  return Number(await redis.call('EVAL', TIME, '1', key));
}
