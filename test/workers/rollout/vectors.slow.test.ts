// The reference episodes in a hardened container: the same observations, digests and rewards as on the library's host.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isMap } from '../../../src/shared/json/value.ts';
import type { Box } from '../../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../../src/workers/rollout/sandbox/docker.ts';
import { playCase, printsEnvironment, unnamed } from '../../../tools/vectors/play-episode.ts';
import { readVectors } from '../../support/vector-file.ts';
import { LABELS, LIMITS } from '../sandbox-contract.ts';
import { testContext } from './test-context.ts';

const SANDBOXED = ['sql-task', 'command', 'code-task', 'terminal'];
const cases = readVectors('cr-trajectories').filter(
  (c) => SANDBOXED.includes(c.in.get('env') as string) && !c.out.has('raises') && !printsEnvironment(c),
);

/** A check whose program nobody has: a miss there, the task's fault in a box (docs/differences.md). */
function checksWithNothing(c: (typeof cases)[number]): boolean {
  const grader = c.in.get('grader');
  const argv = isMap(grader ?? null) ? (grader as Map<string, unknown>).get('argv') : null;
  return Array.isArray(argv) && String(argv[0]).startsWith('no-such-program');
}

describe('in a container', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;

  beforeAll(async () => {
    await driver.prepare(LIMITS.image);
    box = await driver.open(LIMITS, LABELS, new AbortController().signal);
  });
  afterAll(() => driver.close());

  it.each(cases.map((c) => [c.id, c] as const))('%s', async (_, c) => {
    await box.reset();
    const episode = await playCase(c, testContext({ box: async () => box }));
    if (checksWithNothing(c)) {
      expect(episode).toMatchObject({ status: 'no_result', cause: 'environment_error' });
      return;
    }
    if (episode.status !== 'completed') throw new Error(episode.status);
    expect(unnamed(episode.bytes)).toBe(unnamed(c.out.get('file_text') as string));
  });
});
