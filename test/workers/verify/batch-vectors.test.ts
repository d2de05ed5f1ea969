// The reference cases of a whole call: the batch function, the batch path over a scripted platform, and the trainers'
// adapters. The runners are those of `npm run vectors`.

import { expect, test } from 'vitest';
import { EXPECTED_RULES, runReference } from '../../support/reference-run.ts';

test.each(['at-batch', 'at-openrlhf', 'at-verl', 'at-trl'])('%s: nothing differs', async (name) => {
  const run = await runReference(name);
  expect(run.differ).toEqual([]);
  expect(run.rules).toEqual(EXPECTED_RULES[name] ?? {});
  expect(run.equal).toBeGreaterThan(run.cases / 2);
});

// What an answer means is ours; payloads, chunks, order and keys are compared in every case, whatever rule it falls under.
test('at-batchpath: payloads, chunks, order and keys are equal, and where nothing fails everything is', async () => {
  const run = await runReference('at-batchpath');
  expect(run.differ).toEqual([]);
  expect(run.rules).toEqual(EXPECTED_RULES['at-batchpath']);
  expect(run.equal).toBeGreaterThan(50);
});

test('at-breaker: tries, breaker and cache are equal over the fleet’s own scripts, and what has no setting here is named', async () => {
  const run = await runReference('at-breaker');
  expect(run.differ).toEqual([]);
  expect(run.rules).toEqual(EXPECTED_RULES['at-breaker']);
  expect(run.equal).toBe(33);
});
