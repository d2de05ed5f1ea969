import { describe, expect, it } from 'vitest';
import { toValue } from '../../../src/shared/json/json.ts';
import { mapOf, type ValueMap } from '../../../src/shared/json/value.ts';
import type { Completed } from '../../../src/shared/outcome.ts';
import { memberFaults, memberRules } from '../../../src/shared/store/verify-member.ts';
import { completedWith } from '../../support/outcomes.ts';

const SPEC = toValue({
  max_steps: 4,
  sandbox: { isolation: 'recycled' },
  verifier: { weights: { format: 0.1, certified: 1, rejected_penalty: 0.5 }, clip: [-1, 0.9], floor: -1 },
}) as ValueMap;
const RULES = memberRules(SPEC);
const NOTHING = {
  format: 1,
  certified: 0,
  correctness: 0,
  graded: 0,
  rejected_penalty: 0,
  unsupported_penalty: 0,
  consistency: 0,
};

/** A text that a verifier graded with these parts. */
function text(components: Record<string, number>, reward: number, reported = true): Completed {
  const plain = completedWith(0, reward);
  const report = reported ? { report: plain.trajectory } : {};
  const report_sha256 = reported ? plain.trajectory.sha256 : null;
  const certificate = { ...plain.certificate, env: 'text', grade: 'verifier' as const, report_sha256 };
  return { ...plain, components, ...report, certificate };
}

describe('the account of a member', () => {
  it.each<[string, Completed, boolean]>([
    ['without a verifier', completedWith(0, -0.25), false],
    ['judged apart', certified({ env: 'code-task', grade: 'apart', warm: 'python3' }), false],
    ['judged by its exit', certified({ env: 'code-task', grade: 'exit' }), false],
    ['of a text', text(NOTHING, 0.1), true],
    ['of a text above the clip', text({ ...NOTHING, certified: 1 }, 0.9), true],
    ['of a text at the floor', text({}, -1, false), true],
    ['of a text at the floor, with a report that could not be shaped', text({}, -1), true],
  ])('%s holds', (_, member, verified) => {
    expect(memberFaults(member, verified, RULES)).toEqual([]);
  });

  it.each<[string, Completed, boolean, string]>([
    ['a text above its floor', text({}, 0, false), true, 'its components give -1'],
    ['a text above the clip', text({ ...NOTHING, certified: 1 }, 1.1), true, 'its components give 0.9'],
    ['a text without its report', text(NOTHING, 0.1, false), true, 'no report'],
    ['a text with a part of an environment', text({ ...NOTHING, env: 1 }, 1.1), true, 'a text has no component env'],
    [
      'a report where no verifier is',
      { ...text({ env: 1 }, 1), certificate: completedWith(0, 1).certificate },
      false,
      'report',
    ],
    ['a box that was never opened', boxed('guess'), false, 'guess opens none'],
    ['an image without a box', imaged(), false, 'without a box'],
    ['a grade that this environment cannot have', certified({ grade: 'apart' }), false, 'guess was graded apart'],
    [
      'a prepared interpreter where none grades',
      certified({ env: 'code-task', grade: 'exit', warm: 'python3' }),
      false,
      'a prepared interpreter for a grade exit',
    ],
    [
      'a prepared interpreter outside',
      certified({ warm: 'python3' }),
      false,
      'a prepared interpreter for a grade outside',
    ],
    [
      'a box that came to its episode in another way',
      boxed('command'),
      false,
      'was fresh, those of the run are recycled',
    ],
  ])('names %s', (_, member, verified, named) => {
    expect(memberFaults(member, verified, RULES).join('\n')).toContain(named);
  });

  it('of a verified member does not hold where the spec has no verifier', () => {
    expect(memberFaults(text(NOTHING, 0.1), true, memberRules(mapOf({})))).toEqual([
      'is graded by a verifier, and the spec of the run has none',
    ]);
  });

  it('without a result has at most three attempts', () => {
    const lost = { member: 0, status: 'no_result', cause: 'sandbox_lost', detail: '' } as const;
    expect(memberFaults({ ...lost, attempts: 3 }, false, RULES)).toEqual([]);
    expect(memberFaults({ ...lost, attempts: 4 }, false, RULES)).toEqual(['has 4 attempts, where 3 are the most']);
  });
});

function certified(over: Partial<Completed['certificate']>): Completed {
  const member = completedWith(0, 1);
  return { ...member, certificate: { ...member.certificate, ...over } };
}

function boxed(env: string): Completed {
  const member = completedWith(0, 1);
  return { ...member, certificate: { ...member.certificate, env, isolation: 'fresh', image: 'sha256:1' } };
}

function imaged(): Completed {
  const member = completedWith(0, 1);
  return { ...member, certificate: { ...member.certificate, image: 'sha256:1' } };
}
