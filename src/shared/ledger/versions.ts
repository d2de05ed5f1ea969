// With what a run is graded: the image of its boxes and the grader in them, fixed by whichever worker begins first, so that no
// group is graded by two. A worker that has others leaves the run's boxed members alone; where all have, the run waits.

import { z } from 'zod';
import type { Redis } from '../redis/client.ts';
import { defineScript, runKey } from './script.ts';

export interface Versions {
  /** Of the spec's image: the engine's id. */
  image: string;
  /** Over the runner and the grading harness. */
  grader: string;
}

const versionsSchema = z.strictObject({ image: z.string(), grader: z.string() });

const FIX = defineScript('fix-versions', { allowOom: true });

/** Who was refused is forgotten with the run, or after a while. */
const REFUSED_MS = 3_600_000;

/** Fixes `mine` unless others are fixed already; gives those that are. */
export async function fixVersions(redis: Redis, run: string, mine: Versions): Promise<Versions> {
  const fixed = await FIX.call(redis, run, [JSON.stringify(mine)]);
  return typeof fixed === 'string' ? versionsSchema.parse(JSON.parse(fixed)) : mine;
}

/** A worker says that it cannot work on the run; gives all that have said so. */
export async function sayRefused(redis: Redis, run: string, worker: string): Promise<ReadonlySet<string>> {
  const key = `${runKey(run)}:refused`;
  await redis.sadd(key, worker);
  await redis.pexpire(key, REFUSED_MS);
  return new Set(await redis.smembers(key));
}
