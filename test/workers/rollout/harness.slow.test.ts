// The harness of grades made apart, in a hardened box of its own: what an honest check means stays what it means in one
// process, and no forgery passes. The cases are data: test/fixtures/grades.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { GradeBox, type GradeCase, gradeCases, type Nursery } from '../../support/grade-cases.ts';

let box: GradeBox;
beforeAll(() => {
  box = new GradeBox();
});
afterAll(() => box.close());

const named = (cases: GradeCase[]): [string, GradeCase][] => cases.map((one) => [one.id, one]);

async function expectGrade(one: GradeCase, nursery: Nursery): Promise<void> {
  const graded = await box.grade(one, nursery);
  expect({ passed: graded.passed, graded }).toMatchObject({ passed: one.passes });
  // A judge takes in 16 MB a message and holds no more than a few of them.
  expect(graded.memory).toBeLessThan(256 * 1024 * 1024);
}

describe.each([
  ['honest checks, in a nursery of their own', 'honest.cases', 'once'],
  ['honest checks, in a nursery that has served others', 'honest.cases', 'kept'],
  ['honest checks, in a nursery kept warm', 'honest.cases', 'warm'],
  ['forgeries', 'forgeries.cases', 'warm'],
  ['forgeries, in a nursery that is only kept', 'forgeries.cases', 'kept'],
  ['in process, with a completion proof', 'in-process.cases', 'warm'],
] as const)('%s', (_, cases, nursery) => {
  it.each(named(gradeCases(cases)))('%s', (_, one) => expectGrade(one, nursery));
});

describe('what a grade says of its end', () => {
  const solution = (text: string): GradeCase => ({
    ...gradeCases('forgeries.cases')[0]!,
    files: { 'solution.py': text },
  });
  it.each([
    ['a failed check is a completed one', 'def double(n): return 3', { completed: true, exit: 1 }],
    ['an end of the candidate is not', 'import os\nos._exit(0)', { completed: false, why: /channel was lost/ }],
    ['nor is its SystemExit', 'import sys\nsys.exit(0)', { completed: false, why: /SystemExit/ }],
    ['what could not cross is told', 'def double(n): return "x" * 40_000_000', { refused: /40000\d+ bytes/ }],
  ])('%s', async (_, text, expected) => {
    const { result } = await box.grade(solution(text), 'warm');
    for (const [key, value] of Object.entries(expected)) {
      const found = result[key as keyof typeof result];
      if (value instanceof RegExp) expect(found).toMatch(value);
      else expect(found).toBe(value);
    }
  });

  it('a module that the image has not starts nothing', async () => {
    const absent = gradeCases('in-process.cases').find((one) => one.module === 'nosuchmodule')!;
    expect(await box.grade(absent, 'warm')).toMatchObject({ errno: 2, result: {} });
  });
});
