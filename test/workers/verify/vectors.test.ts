// The reference cases of one completion and one answer: parsers, reports, rewards, keys, configs; and of crucible's
// files. The runners are those of `npm run vectors`: nothing differs, and what is stricter is so by a rule's name.
// Tampered files are replayed one by one in replay.test.ts; the runner's account of them is in vectors.slow.test.ts.

import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import type { ValueMap } from '../../../src/shared/json/value.ts';
import { RULES, type RuleName } from '../../../tools/vectors/rules.ts';
import { runnerFor } from '../../../tools/vectors/runners.ts';
import { type Runner, verdictOf } from '../../../tools/vectors/verdict.ts';
import { EXPECTED_RULES, runReference } from '../../support/reference-run.ts';
import { readVectors } from '../../support/vector-file.ts';

const FILES = [
  'at-parsers',
  'at-reports',
  'at-rewards',
  'at-cache-keys',
  'at-config',
  'cr-formats',
  'cr-random',
  'cr-materialize',
  'cr-registry',
  'cr-export',
];

describe('the reference vectors of the Python libraries', () => {
  test.each(FILES)('%s: nothing differs, and only named rules are stricter', { timeout: 180_000 }, async (name) => {
    const run = await runReference(name);
    expect(run.differ).toEqual([]);
    expect(run.rules).toEqual(EXPECTED_RULES[name] ?? {});
    // Rules are the exception: most cases are plainly equal.
    expect(run.equal).toBeGreaterThan(run.cases / 2);
  });
});

describe('the runners', () => {
  const runners: Runner[] = [];
  afterAll(async () => {
    for (const runner of runners) await runner.close?.();
  });

  // Another reference answer for cases that are equal: each is found.
  test.each([
    ['at-parsers', 'parsed', (out: ValueMap) => out.set('parsed', null)],
    ['at-reports', 'report', (out: ValueMap) => (out.get('report') as ValueMap).set('proof_summary', 'another')],
    ['at-rewards', 'total', (out: ValueMap) => out.set('total', 0.123)],
    ['at-cache-keys', 'sha256', (out: ValueMap) => out.set('sha256', 'ff')],
    [
      'at-config',
      'accepted',
      (out: ValueMap) => ((out.get('accepted') as ValueMap).get('verifier') as ValueMap).set('floor', 0.5123),
    ],
    ['at-openrlhf', 'body_text', (out: ValueMap) => out.set('body_text', '{}')],
    ['at-verl', 'score', (out: ValueMap) => out.set('score', 0.123)],
    ['at-trl', 'reward_fn_calls', (out: ValueMap) => out.set('reward_fn_calls', [])],
    ['at-batch', 'rewards', (out: ValueMap) => out.set('rewards', [0.123])],
    ['cr-random', 'value', (out: ValueMap) => out.set('value', -77n)],
    ['cr-registry', 'config', (out: ValueMap) => (out.get('config') as ValueMap).set('more', 1n)],
    ['cr-export', 'jsonl', (out: ValueMap) => out.set('jsonl', '{}\n')],
  ] as const)('%s: find another %s', async (name, key, change) => {
    const runner = runnerFor(name) as Runner;
    runners.push(runner);
    const equal = [];
    for (const one of readVectors(name))
      if (one.out.get(key) != null && (await verdictOf(runner, one)).status === 'equal') equal.push(one);
    expect(equal.length).toBeGreaterThan(3);
    const verdicts = [];
    for (const one of equal) {
      change(one.out);
      verdicts.push((await verdictOf(runner, one)).status);
    }
    expect(verdicts).not.toContain('equal');
    // A rule may cover what is changed, where the case holds a NaN or asks twice.
    expect(verdicts.filter((status) => status === 'differ').length).toBeGreaterThan(verdicts.length * 0.8);
  });

  test('have their figures in the docs', () => {
    const docs = readFileSync(new URL('../../../docs/differences.md', import.meta.url), 'utf8');
    const counted = Object.keys(RULES).map((rule) => [
      rule,
      Object.values(EXPECTED_RULES).reduce((sum, rules) => sum + (rules[rule as RuleName] ?? 0), 0),
    ]);
    const told = [...docs.matchAll(/^\| `([a-z-]+)` \|.*\| (\d+) \|$/gm)].map(([, rule, count]) => [
      rule,
      Number(count),
    ]);
    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(counted));
    const [, all, equal, stricter, rest] =
      /Of the ([\d,]+) cases that\s+are in the tree ([\d,]+) are equal, (\d+) stricter, none differs, and (\d+) are not run/
        .exec(docs)
        ?.map((text) => Number(text.replace(',', ''))) ?? [];
    expect(stricter).toBe(counted.reduce((sum, [, count]) => sum + Number(count), 0));
    expect((equal ?? 0) + (stricter ?? 0) + (rest ?? 0)).toBe(all);
  });

  test('have a sentence for every rule', () => {
    for (const rule of Object.values(RULES)) expect(rule.says).toMatch(/^[^\n]{20,160}$/);
  });
});
