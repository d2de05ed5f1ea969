// Runs a file of reference cases with the runners of `npm run vectors`, for the tests; and the rules that are in use
// there today: a new one is a decision, and stands in the interface first.

import type { RuleName } from '../../tools/vectors/rules.ts';
import { runnerFor } from '../../tools/vectors/runners.ts';
import { type Runner, verdictOf } from '../../tools/vectors/verdict.ts';
import { readVectors } from './vector-file.ts';

/** How many cases of each file are stricter, by rule. */
export const EXPECTED_RULES: Record<string, Partial<Record<RuleName, number>>> = {
  'at-batch': { 'equal-queries-once': 1, 'no-result-is-not-shaped': 1, 'nothing-raises': 2 },
  'at-batchpath': {
    'batch-item-meaning': 72,
    'equal-queries-once': 8,
    'failures-mean-the-same': 15,
    'garbage-is-a-failure': 9,
  },
  'at-breaker': { 'equal-queries-once': 1, 'garbage-is-a-failure': 2 },
  'at-config': { 'finite-numbers': 5, 'key-given-twice': 1 },
  'at-openrlhf': { 'finite-numbers': 1, 'nothing-raises': 1 },
  'at-parsers': { 'nothing-raises': 13 },
  'at-reports': { 'nothing-raises': 4 },
  'at-rewards': { 'finite-numbers': 5 },
  'at-trl': { 'nothing-raises': 1 },
  'at-verl': { 'finite-numbers': 1 },
  'cr-formats': {
    'broken-file': 22,
    'exact-total': 1,
    'final-observation': 2,
    'no-extra-keys': 3,
    'types-count': 2,
    unrecorded: 1,
  },
  'cr-tamper': {
    'broken-file': 15,
    'exact-total': 9,
    'final-observation': 5,
    'key-given-twice': 10,
    'no-empty-episode': 3,
    'no-extra-keys': 7,
    'seed-is-an-integer': 7,
    'types-count': 24,
  },
  'cr-trajectories': { 'broken-file': 5, 'nothing-raises': 30 },
};

export interface ReferenceRun {
  cases: number;
  equal: number;
  differ: string[];
  rules: Partial<Record<RuleName, number>>;
}

export async function runReference(name: string): Promise<ReferenceRun> {
  const cases = readVectors(name);
  const runner = runnerFor(name) as Runner;
  const run: ReferenceRun = { cases: cases.length, equal: 0, differ: [], rules: {} };
  try {
    for (const one of cases) {
      const verdict = await verdictOf(runner, one);
      if (verdict.status === 'equal') run.equal++;
      if (verdict.status === 'differ') run.differ.push(`${one.id}: ${verdict.why}`);
      if (verdict.status === 'stricter') run.rules[verdict.rule] = (run.rules[verdict.rule] ?? 0) + 1;
    }
  } finally {
    await runner.close?.();
  }
  return run;
}
