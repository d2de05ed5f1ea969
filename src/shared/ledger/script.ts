// The ledger's Lua scripts, each called on the keys of one run.

import type { Redis } from '../redis/client.ts';
import { type LuaScript, loadScript } from '../redis/script.ts';

const FOLDER = new URL('.', import.meta.url);

/** Redis keys of one run share a hash slot: `{run}` is the hash tag. */
export function runKey(run: string): string {
  return `farm:{${run}}`;
}

export function defineScript(name: string, options: { allowOom: boolean }): LuaScript {
  const script = loadScript(FOLDER, name, options);
  return {
    call: (redis: Redis, run, args) => script.call(redis, runKey(run), args),
    callBuffer: (redis: Redis, run, args) => script.callBuffer(redis, runKey(run), args),
  };
}
