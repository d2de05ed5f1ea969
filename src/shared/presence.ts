// Which workers are there: each says so every few seconds, with its role and realm. Lets `run` find workers of the
// house instead of bringing its own, and lets a sweeper tell whose containers have no owner any more.

import type { Redis } from 'ioredis';

const KEY = 'farm:workers';
const EVERY_MS = 3_000;
const GOOD_FOR_MS = 15_000;

export type RoleName = 'rollout' | 'verify' | 'collect';

export interface Present {
  role: RoleName;
  realm: string;
  /** Incarnation of the process. */
  worker: string;
}

/** Announces until `stop`; a failure to announce is only a worker that is not seen. */
export async function announce(redis: Redis, me: Present): Promise<{ stop(): Promise<void> }> {
  const text = `${me.role} ${me.realm} ${me.worker}`;
  const say = async (): Promise<void> => {
    await redis.zadd(KEY, Date.now() + GOOD_FOR_MS, text);
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

export async function present(redis: Redis): Promise<Present[]> {
  await redis.zremrangebyscore(KEY, '-inf', Date.now() - 60_000);
  const texts = await redis.zrangebyscore(KEY, Date.now(), '+inf');
  return texts.map((text) => {
    const [role, realm, worker] = text.split(' ') as [RoleName, string, string];
    return { role, realm, worker };
  });
}
