// Checked specs for tests: written to a folder and read as the commands read them.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Config } from '../../src/shared/config.ts';
import { printProblems } from '../../src/shared/spec/problem.ts';
import { readSpec } from '../../src/shared/spec/reader.ts';
import type { TaskSource } from '../../src/shared/spec/source.ts';
import type { RunSpec } from '../../src/shared/spec/spec.ts';

/** Throws what is wrong with it. */
export async function readRunSpec(
  folder: string,
  config: Config,
  content: Record<string, unknown>,
): Promise<{ spec: RunSpec; source: TaskSource }> {
  const file = path.join(folder, 'spec.json');
  writeFileSync(file, JSON.stringify(content));
  const read = await readSpec(file, config);
  if (!read.ok) throw new Error(printProblems(read.problems));
  if (read.kind !== 'run') throw new Error('not a run');
  return read;
}

/** `count` guessing tasks, g0, g1, … */
export function guessTasks(count: number, high = 8): Record<string, unknown>[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `g${i}`,
    env: 'guess',
    seed: i,
    config: { low: 1, high, max_guesses: 4 },
  }));
}
