// One Lua script of the ledger: `common.lua` in front, called by hash, loaded again where a restarted Redis forgot it.
// `allow-oom` scripts run on a full Redis too: what frees memory must never be refused for the lack of it.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const FILES = new URL('.', import.meta.url);
const COMMON = readFileSync(new URL('common.lua', FILES), 'utf8');

type Argument = string | number | Buffer;

export interface Script {
  /** Calls the script on one run's keys; the answer's texts as strings. */
  call(redis: Redis, run: string, args: readonly Argument[]): Promise<unknown>;
  /** The same, with every text of the answer as a Buffer: blobs pass through. */
  callBuffer(redis: Redis, run: string, args: readonly Argument[]): Promise<unknown>;
}

/** Redis keys of one run share a hash slot: `{run}` is the hash tag. */
export function runKey(run: string): string {
  return `farm:{${run}}`;
}

export function defineScript(name: string, options: { allowOom: boolean }): Script {
  const body = readFileSync(new URL(`${name}.lua`, FILES), 'utf8');
  const text = `#!lua${options.allowOom ? ' flags=allow-oom' : ''}\n${COMMON}\n${body}`;
  const sha = createHash('sha1').update(text).digest('hex');
  const attempt = async (
    redis: Redis,
    run: string,
    args: readonly Argument[],
    method: 'call' | 'callBuffer',
  ): Promise<unknown> => {
    const rest = ['1', runKey(run), ...args];
    try {
      return await redis[method]('EVALSHA', sha, ...rest);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await redis[method]('EVAL', text, ...rest);
    }
  };
  return {
    call: (redis, run, args) => attempt(redis, run, args, 'call'),
    callBuffer: (redis, run, args) => attempt(redis, run, args, 'callBuffer'),
  };
}
