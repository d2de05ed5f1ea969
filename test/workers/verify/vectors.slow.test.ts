// The reference cases that play whole episodes again, each tampered file in turn.

import { expect, test } from 'vitest';
import { EXPECTED_RULES, runReference } from '../../support/reference-run.ts';

test('cr-tamper: nothing differs, and only named rules are stricter', async () => {
  const run = await runReference('cr-tamper');
  expect(run.differ).toEqual([]);
  expect(run.rules).toEqual(EXPECTED_RULES['cr-tamper']);
  expect(run.equal).toBeGreaterThan(run.cases / 2);
});
