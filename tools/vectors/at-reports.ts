// An answer, a refusal or a failure as a report, field for field.

import { isMap, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import {
  type AmberReport,
  floorReport,
  reportFromDenial,
  reportFromResult,
  reportToValue,
} from '../../src/workers/verify/report.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, type Verdict } from './verdict.ts';

export function runReport(one: VectorCase): Verdict {
  const report = reportOf(one);
  // Ours never raises: what is no mapping is no answer (wire.ts), a number beyond a double counts as missing.
  if (one.out.has('raises')) return judge(one, false, 'a report', ['nothing-raises']);
  if (!report) return differ('no report');
  const expected = one.out.get('report') as ValueMap;
  const wrong = [...reportToValue(report)].filter(([key, x]) => !sameAsReference(x, expected.get(key) as Value));
  return judge(one, wrong.length === 0, `another ${wrong.map(([key]) => key).join(', ')}`);
}

function reportOf(one: VectorCase): AmberReport | null {
  const from = one.in.get('from');
  if (from === 'floor') return floorReport(one.in.get('reason') as string);
  if (from === 'error') return reportFromDenial(denialOf(one.in.get('error') as ValueMap));
  const result = one.in.get('result') as Value;
  return isMap(result) ? reportFromResult(result) : null;
}

/** The library falls back from the error's message to its class. */
export function denialOf(error: ValueMap): { message: string; rejectedFacts: Value } {
  const message = (error.get('message') as string) || (error.get('class') as string);
  return { message, rejectedFacts: error.get('rejected_facts') ?? null };
}
