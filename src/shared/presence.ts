// Which workers are there: each says so every few seconds, with its role, realm and slots. Lets `run` find workers of the
// house instead of bringing its own, and lets a sweeper tell whose containers have no owner any more. Time is Redis's;
// a worker of this machine whose process is gone is not there, whatever it said last.

import { readSlots, type Slots, writeSlots } from './lane.ts';
import { isKnownDead, processIdentity } from './process-identity.ts';
import type { Redis } from './redis/client.ts';
import { clockOf } from './redis/nodes.ts';

const KEY = 'farm:workers';
const EVERY_MS = 3_000;
const GOOD_FOR_MS = 15_000;
/** Who was not heard of for so long is forgotten. */
const FORGOTTEN_MS = 60_000;
/** Also on a full Redis: a worker that cannot say that it is there would be taken for a dead one. */
const SAY = `#!lua flags=allow-oom
local t = redis.call('TIME')
return redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1], ARGV[2])`;

export type RoleName = 'rollout' | 'verify' | 'collect';

export interface Present {
  role: RoleName;
  realm: string;
  /** Incarnation of the process. */
  worker: string;
  /** What it works on at once. */
  slots: Slots;
  /** Fingerprint of the AmberTrace key that it holds; a worker without one, or of an older version, says nothing. */
  key?: string | null;
}

/** Announces until `stop`; a failure to announce is only a worker that is not seen. */
export async function announce(redis: Redis, me: Present): Promise<{ stop(): Promise<void> }> {
  const text = `${me.role} ${me.realm} ${me.worker} ${processIdentity()} ${writeSlots(me.slots)}${me.key ? ` ${me.key}` : ''}`;
  const say = async (): Promise<void> => {
    await redis.call('EVAL', SAY, '1', KEY, String(GOOD_FOR_MS), text);
  };
  await say();
  const timer = setInterval(() => void say().catch(() => {}), EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await redis.zrem(KEY, text).catch(() => {});
    },
  };
}

export function present(redis: Redis): Promise<Present[]> {
  return heardOf(redis, 0);
}

/** Those of one realm: of the shared one, whom any run may have. */
export async function presentIn(redis: Redis, realm: string): Promise<Present[]> {
  return (await present(redis)).filter((one) => one.realm === realm);
}

/** Workers that may still be there, though they have not said so for a while: a Redis that was away heard nobody. */
export function perhapsPresent(redis: Redis): Promise<Present[]> {
  return heardOf(redis, FORGOTTEN_MS);
}

async function heardOf(redis: Redis, graceMs: number): Promise<Present[]> {
  const now = await clockOf(redis, KEY);
  await redis.zremrangebyscore(KEY, '-inf', now - FORGOTTEN_MS);
  const texts = await redis.zrangebyscore(KEY, now - graceMs, '+inf');
  return texts.flatMap((text) => {
    const [role, realm, worker, identity, slots, key] = text.split(' ') as [RoleName, string, string, ...string[]];
    if (isKnownDead(identity ?? '')) return [];
    return [{ role, realm, worker, slots: readSlots(slots ?? ''), ...(key ? { key } : {}) }];
  });
}
