// The ledger's Lua scripts, each called on the keys of one run.

import type { Redis } from '../redis/client.ts';
import { type LuaScript, loadScript } from '../redis/script.ts';
import { refusalOf } from './ledger-version.ts';

const FOLDER = new URL('.', import.meta.url);

/** Redis keys of one run share a hash slot: `{run}` is the hash tag. */
export function runKey(run: string): string {
  return `farm:{${run}}`;
}

/** Throws FarmError where the run is of another version of the ledger. */
export function defineScript(name: string, options: { allowOom: boolean }): LuaScript {
  const script = loadScript(FOLDER, name, { ...options, prelude: ['common', 'version'] });
  const told = async (run: string, answer: Promise<unknown>): Promise<unknown> =>
    answer.catch((error: unknown) => {
      throw refusalOf(run, error);
    });
  return {
    call: (redis: Redis, run, args) => told(run, script.call(redis, runKey(run), args)),
    callBuffer: (redis: Redis, run, args) => told(run, script.callBuffer(redis, runKey(run), args)),
  };
}
