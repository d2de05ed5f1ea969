// With what a run is graded: the image of its boxes and the grader in them, fixed by whichever worker begins first, so that no
// group is graded by two. A worker that has others leaves the run's boxed members alone; where all have, the run waits.

import { z } from 'zod';
import type { Redis } from '../redis/client.ts';
import { runKey } from './script.ts';

export interface Versions {
  /** Of the spec's image: the engine's id. */
  image: string;
  /** Over the runner and the grading harness. */
  grader: string;
}

const versionsSchema = z.strictObject({ image: z.string(), grader: z.string() });

/** Nothing is left of a run that is not there. Gives the fixed ones, or false. */
const FIX = `#!lua flags=allow-oom
if redis.call('HEXISTS', KEYS[1], 'state') == 0 then return false end
redis.call('HSETNX', KEYS[1], 'versions', ARGV[1])
return redis.call('HGET', KEYS[1], 'versions')`;

/** Who was refused is forgotten with the run, or after a while. */
const REFUSED_MS = 3_600_000;

/** Fixes `mine` unless others are fixed already; gives those that are. */
export async function fixVersions(redis: Redis, run: string, mine: Versions): Promise<Versions> {
  const fixed = await redis.call('EVAL', FIX, '1', `${runKey(run)}:run`, JSON.stringify(mine));
  return typeof fixed === 'string' ? versionsSchema.parse(JSON.parse(fixed)) : mine;
}

/** A worker says that it cannot work on the run; gives all that have said so. */
export async function sayRefused(redis: Redis, run: string, worker: string): Promise<ReadonlySet<string>> {
  const key = `${runKey(run)}:refused`;
  await redis.sadd(key, worker);
  await redis.pexpire(key, REFUSED_MS);
  return new Set(await redis.smembers(key));
}
