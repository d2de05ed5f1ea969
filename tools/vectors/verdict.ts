// What comes of one reference case: equal, stricter by a rule that has a name, different, or not run for a reason.

import { messageOf } from '../../src/shared/errors.ts';
import { type RuleName, ruleFor } from './rules.ts';
import type { VectorCase } from './vector-file.ts';

export type Verdict =
  | { status: 'equal' }
  | { status: 'stricter'; rule: RuleName }
  | { status: 'differ'; why: string }
  /** The reason is one of few: it is counted, not told case by case. */
  | { status: 'not_run'; reason: string };

/** What the cases of one file are run by. */
export interface Runner {
  run(one: VectorCase): Verdict | Promise<Verdict>;
  close?(): Promise<void>;
}

export const EQUAL: Verdict = { status: 'equal' };

export function differ(why: string): Verdict {
  return { status: 'differ', why };
}

export function notRun(reason: string): Verdict {
  return { status: 'not_run', reason };
}

/** Equal, else stricter by the first of `rules` that covers the case, else different. */
export function judge(one: VectorCase, same: boolean, why: string, rules: readonly RuleName[] = []): Verdict {
  if (same) return EQUAL;
  const rule = ruleFor(one, rules);
  return rule === null ? differ(why) : { status: 'stricter', rule };
}

/** A runner that throws has found a difference too: nothing of ours raises. */
export async function verdictOf(runner: Runner, one: VectorCase): Promise<Verdict> {
  try {
    return await runner.run(one);
  } catch (error) {
    return differ(`raises: ${messageOf(error)}`);
  }
}
