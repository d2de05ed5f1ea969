// A report as a reward: the total and every component to the last digit, in the library's order.

import type { Value, ValueMap } from '../../src/shared/json/value.ts';
import { unsupportedFraction } from '../../src/workers/verify/provenance.ts';
import { shape } from '../../src/workers/verify/shaper.ts';
import { checkerOptions, parsedFromValue, reportFromValue, shaperConfig } from './reference-values.ts';
import type { VectorCase } from './vector-file.ts';
import { EQUAL, judge, type Verdict } from './verdict.ts';

export function runReward(one: VectorCase): Verdict {
  if (one.kind === 'checker') {
    const options = checkerOptions(one.in.get('checker') as ValueMap);
    const ours = unsupportedFraction(one.in.get('facts') as ValueMap, one.in.get('prompt') as string, options);
    return judge(one, Object.is(ours, one.out.get('unsupported_fraction')), `a fraction of ${ours}`, [
      'nothing-raises',
    ]);
  }
  const config = shaperConfig(one.in.get('shaper') as ValueMap);
  // Such a shaper cannot come of a config; the library raises when it adds up.
  if (!config) return judge(one, one.out.has('raises'), 'no such shaper');
  const shaped = shape(
    config,
    parsedFromValue(one.in.get('parsed') as ValueMap),
    reportFromValue(one.in.get('report') as ValueMap),
    one.in.get('gold') ?? null,
    one.in.get('criteria_gold') ?? null,
  );
  // There the floor stands in for a shaper that raises, here for one that has no total.
  if (one.out.has('raises')) return judge(one, shaped.total === null, `a total of ${shaped.total}`);
  if (shaped.total === null) return judge(one, false, shaped.refused ?? 'no total', ['finite-numbers']);
  const ours = Object.entries(shaped.components);
  const theirs = [...(one.out.get('components') as Map<string, Value>)];
  if (ours.map(([key]) => key).join() !== theirs.map(([key]) => key).join())
    return judge(one, false, 'other components');
  const wrong = theirs.filter(([key, x]) => Number(x) !== shaped.components[key]).map(([key]) => key);
  if (Number(one.out.get('total')) !== shaped.total) wrong.push('total');
  return wrong.length === 0 ? EQUAL : judge(one, false, `another ${wrong.join(', ')}`);
}
