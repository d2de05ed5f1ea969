// Lua scripts kept as files: a folder's prelude (`common.lua`, or several files) in front of each, called by hash, loaded
// again where a restarted Redis forgot it. `allow-oom` scripts run on a full Redis too: what frees memory must never be
// refused for the lack of it.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from './client.ts';

type Argument = string | number | Buffer;

export interface LuaScript {
  /** Calls the script on `key`; the answer's texts as strings. */
  call(redis: Redis, key: string, args: readonly Argument[]): Promise<unknown>;
  /** The same, with every text of the answer as a Buffer: blobs pass through. */
  callBuffer(redis: Redis, key: string, args: readonly Argument[]): Promise<unknown>;
}

/** `NAME.lua` of `folder` behind the folder's prelude. */
export function loadScript(
  folder: URL,
  name: string,
  { allowOom, prelude = ['common'] }: { allowOom: boolean; prelude?: readonly string[] },
): LuaScript {
  const parts = [...prelude, name].map((file) => readFileSync(new URL(`${file}.lua`, folder), 'utf8'));
  const text = `#!lua${allowOom ? ' flags=allow-oom' : ''}\n${parts.join('\n')}`;
  const sha = createHash('sha1').update(text).digest('hex');
  const attempt = async (
    redis: Redis,
    key: string,
    args: readonly Argument[],
    method: 'call' | 'callBuffer',
  ): Promise<unknown> => {
    const rest = ['1', key, ...args];
    try {
      return await redis[method]('EVALSHA', sha, ...rest);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await redis[method]('EVAL', text, ...rest);
    }
  };
  return {
    call: (redis, key, args) => attempt(redis, key, args, 'call'),
    callBuffer: (redis, key, args) => attempt(redis, key, args, 'callBuffer'),
  };
}
