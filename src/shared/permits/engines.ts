// Which engines the rollout workers have: each says so while it is there. Two workers on one engine start no more boxes than
// one does, so whoever asks for more workers has to know how many engines there are.

import type { Redis } from '../redis/client.ts';
import type { EngineFacts } from '../sandbox.ts';

const KEY = 'farm:engines';
const EVERY_MS = 5_000;
const GOOD_FOR_MS = 20_000;
const SAY = `#!lua flags=allow-oom
local t = redis.call('TIME')
return redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1], ARGV[2])`;

export interface EngineUse {
  engine: string;
  worker: string;
}

/** An engine that does not answer is not told of until it does. */
export function announceEngine(
  redis: Redis,
  worker: string,
  facts: () => Promise<EngineFacts>,
): { stop(): Promise<void> } {
  let text: string | null = null;
  let asking = false;
  const say = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    try {
      text ??= `${(await facts()).id} ${worker}`;
      await redis.call('EVAL', SAY, '1', KEY, String(GOOD_FOR_MS), text);
    } catch {
      // told at the next turn
    } finally {
      asking = false;
    }
  };
  void say();
  const timer = setInterval(() => void say(), EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      if (text !== null) await redis.zrem(KEY, text).catch(() => {});
    },
  };
}

export async function enginesInUse(redis: Redis): Promise<EngineUse[]> {
  const [seconds, micros] = await redis.time();
  const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  await redis.zremrangebyscore(KEY, '-inf', now);
  const texts = await redis.zrangebyscore(KEY, now, '+inf');
  return texts.flatMap((text) => {
    const at = text.lastIndexOf(' ');
    return at < 0 ? [] : [{ engine: text.slice(0, at), worker: text.slice(at + 1) }];
  });
}
