// Runs a file of reference cases with the runners of `npm run vectors`, for the tests; and the rules that are in use
// there today: a new one is a decision, and stands in the interface first.

import type { RuleName } from '../../tools/vectors/rules.ts';
import { runnerFor } from '../../tools/vectors/runners.ts';
import { type Runner, verdictOf } from '../../tools/vectors/verdict.ts';
import { readVectors } from './vector-file.ts';

export const EXPECTED_RULES: Record<string, RuleName[]> = {
  'at-parsers': ['nothing-raises'],
  'at-reports': ['nothing-raises'],
  'at-rewards': ['finite-numbers'],
  'at-config': ['finite-numbers', 'key-given-twice'],
  'at-batch': ['equal-queries-once', 'no-result-is-not-shaped', 'nothing-raises'],
  'at-breaker': ['equal-queries-once', 'garbage-is-a-failure'],
  'at-batchpath': ['batch-item-meaning', 'equal-queries-once', 'failures-mean-the-same', 'garbage-is-a-failure'],
  'at-openrlhf': ['finite-numbers', 'nothing-raises'],
  'at-verl': ['finite-numbers'],
  'at-trl': ['nothing-raises'],
  'cr-formats': ['broken-file', 'exact-total', 'final-observation', 'no-extra-keys', 'types-count', 'unrecorded'],
  'cr-tamper': [
    'broken-file',
    'exact-total',
    'final-observation',
    'key-given-twice',
    'no-empty-episode',
    'no-extra-keys',
    'seed-is-an-integer',
    'types-count',
  ],
};

export interface ReferenceRun {
  cases: number;
  equal: number;
  differ: string[];
  rules: RuleName[];
}

export async function runReference(name: string): Promise<ReferenceRun> {
  const cases = readVectors(name);
  const runner = runnerFor(name) as Runner;
  const run: ReferenceRun = { cases: cases.length, equal: 0, differ: [], rules: [] };
  const rules = new Set<RuleName>();
  try {
    for (const one of cases) {
      const verdict = await verdictOf(runner, one);
      if (verdict.status === 'equal') run.equal++;
      if (verdict.status === 'differ') run.differ.push(`${one.id}: ${verdict.why}`);
      if (verdict.status === 'stricter') rules.add(verdict.rule);
    }
  } finally {
    await runner.close?.();
  }
  return { ...run, rules: [...rules].sort() };
}
