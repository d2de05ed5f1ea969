// What every sandbox driver promises of a grade (src/shared/sandbox.ts, `grade`), stated once and run on each of them.
// What only users of their own can keep is in sandbox-grade.slow.test.ts.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Box, Check, Grade, GradeLevel, GradeResult, SandboxDriver } from '../../src/shared/sandbox.ts';
import { spoken } from '../support/spoken.ts';
import { bytes, LABELS, LIMITS, run } from './sandbox-contract.ts';

export const DOUBLE = 'def double(n):\n    return 2 * n\n';
export const CHECK =
  "import solution\nfor n in (0, 1, -3, 10**20):\n    assert solution.double(n) == 2 * n\nprint('judged')\n";

export function checkOf(solution: string, over: Partial<Check> = {}, hidden = CHECK): Check {
  return {
    kind: 'apart',
    interpreter: 'python3',
    file: 'check.py',
    module: null,
    argv: ['check.py'],
    files: bytes({ 'solution.py': solution }),
    hidden: bytes({ 'check.py': hidden }),
    own: ['solution.py'],
    task: { functions: [], names: [], withheld: [] },
    warm: false,
    timeoutMs: 60_000,
    outputBytes: 64 * 1024,
    ...over,
  };
}

export function graded(grade: Grade): GradeResult {
  if (grade.status !== 'graded') throw new Error(`not laid: ${grade.path}: ${grade.message}`);
  return grade;
}

/** `reached`: the level that this driver can give for each kind; `startMs`: what a program may need there before its first line. */
export function gradeContract(
  name: string,
  make: () => SandboxDriver,
  reached: Record<Check['kind'], GradeLevel>,
  startMs = 0,
): void {
  describe(`${name}: grades`, () => {
    let driver: SandboxDriver;
    let box: Box;

    beforeAll(async () => {
      driver = make();
      await driver.prepare(LIMITS.image);
      box = await driver.open(LIMITS, LABELS, new AbortController().signal);
    });
    afterAll(() => driver.close());

    for (const kind of ['apart', 'in-process'] as const)
      for (const warm of [false, true])
        describe(`${kind}${warm ? ', warm' : ''}`, () => {
          const grade = async (solution: string, over: Partial<Check> = {}, hidden = CHECK) =>
            graded(await box.grade(checkOf(solution, { kind, warm, ...over }, hidden)));

          test('passes what is right and says at which level', async () => {
            const right = await grade(DOUBLE);
            expect(right).toMatchObject({ passed: true, level: reached[kind], cause: 'exit', exitCode: 0, why: null });
            expect(right.stdout.toString()).toBe('judged\n');
          });

          test('fails what is wrong, with the reason for people on stderr', async () => {
            const wrong = await grade('def double(n):\n    return 3\n');
            expect(wrong).toMatchObject({ passed: false, cause: 'exit', exitCode: 1 });
            expect(wrong.stderr.toString()).toContain('AssertionError');
          });

          test("tells the check's own status, and its arguments are its own", async () => {
            const hidden = 'import sys\nprint(sys.argv)\nsys.exit(int(sys.argv[1]))\n';
            const seven = await grade(DOUBLE, { argv: ['check.py', '7', 'ü'] }, hidden);
            expect(seven).toMatchObject({ passed: false, cause: 'exit', exitCode: 7 });
            expect(seven.stdout.toString()).toBe("['check.py', '7', 'ü']\n");
            expect((await grade(DOUBLE, { argv: ['check.py', '0'] }, hidden)).passed).toBe(true);
          });

          test('starts from an empty box: nothing of before runs on or lies about', async () => {
            await box.write(bytes({ 'left.txt': 'x', 'check.py': 'print("old")' }));
            await run(box, ['sh', '-c', '(while true; do echo x >> grown; sleep 0.05; done) >/dev/null 2>&1 &']);
            const hidden =
              "import os, time\ntime.sleep(0.2)\nprint(sorted(set(os.listdir()) & {'left.txt', 'grown'}))\n";
            expect((await grade(DOUBLE, {}, hidden)).stdout.toString()).toBe('[]\n');
          });

          test("the check's own files win over edits, also over a folder in their place", async () => {
            const files = bytes({
              'solution.py': 'def double(n):\n    return 3\n',
              'check.py/__init__.py': 'print("ok")',
            });
            expect((await grade('', { files })).passed).toBe(false);
            const shadow = bytes({ 'solution.py': 'def double(n):\n    return 3\n', 'check.py': 'print("ok")' });
            expect((await grade('', { files: shadow })).passed).toBe(false);
          });

          test('nothing of the agent’s is imported in the place of a file of the check', async () => {
            const hidden = bytes({
              'check.py': 'import part, solution\nassert solution.double(2) == part.four',
              'part.py': 'four = 4\n',
            });
            const files = bytes({
              'solution.py': 'def double(n):\n    return 3\n',
              'part/__init__.py': 'four = 3\n',
              'part.so': 'x',
            });
            expect((await grade('', { files, hidden })).passed).toBe(false);
          });

          test('ends at its deadline with all that it started, and keeps what was said by then', async () => {
            const solution = 'import time\ndef double(n):\n    time.sleep(600)\n';
            const hidden = "print('before', flush=True)\nimport solution\nsolution.double(1)\n";
            const late = await spoken(startMs + 700, async (timeoutMs) => {
              const started = performance.now();
              const graded = await grade(solution, { timeoutMs }, hidden);
              expect(performance.now() - started).toBeLessThan(timeoutMs + 40_000);
              return graded;
            });
            expect(late).toMatchObject({ passed: false, cause: 'timeout', exitCode: -1 });
            expect(late.stdout.toString()).toBe('before\n');
          });

          test('keeps the head of what is printed and counts the rest', async () => {
            const many = await grade(DOUBLE, { outputBytes: 100 }, "print('x' * 100_000)\n");
            expect([many.stdout.length, many.stdoutBytes, many.passed]).toEqual([100, 100_001, true]);
          });

          test('is ended at once when it is not wanted any more, and the box grades on', async () => {
            const stop = new AbortController();
            const started = performance.now();
            setTimeout(() => stop.abort(new Error('no more')), 300);
            const slow = grade('import time\ntime.sleep(600)\n', { timeoutMs: 600_000, signal: stop.signal });
            await expect(slow).rejects.toThrow('no more');
            expect(performance.now() - started).toBeLessThan(startMs + 30_000);
            expect((await grade(DOUBLE)).passed).toBe(true);
          });

          test('without its interpreter is a launch error, and no grade', async () => {
            const none = await grade(DOUBLE, { interpreter: 'python9' });
            expect(none).toMatchObject({ passed: false, cause: 'launch', launchError: { code: 'ENOENT' } });
          });

          test('whose files cannot be laid says which', async () => {
            const files = bytes({ 'a/b': '1', 'a/b/c': '2' });
            expect(await box.grade(checkOf('', { kind, warm, files }))).toMatchObject({
              status: 'not_laid',
              hidden: false,
              path: 'a/b/c',
              reason: 'other',
            });
            const hidden = bytes({ 'check.py': '', 'd/e': '1', 'd/e/f': '2' });
            expect(await box.grade(checkOf('', { kind, warm, files: new Map(), hidden }))).toMatchObject({
              status: 'not_laid',
              hidden: true,
              path: 'd/e/f',
            });
          });

          test('takes many files, and large ones', async () => {
            const files = bytes(Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`d${i % 7}/f${i}`, `${i}`])));
            files.set('big', Buffer.alloc(3_000_000, 'a'));
            files.set(
              'solution.py',
              Buffer.from('import os\ndef double(n):\n    return [len(os.listdir("d3")), os.path.getsize("big")]\n'),
            );
            const seen = await grade('', { files }, 'import solution\nprint(solution.double(1))\n');
            expect(seen.stdout.toString()).toBe('[43, 3000000]\n');
          });
        });

    test('start-up files and a module of the run’s own name are the task’s, or are not there', async () => {
      const hidden = bytes({
        'test_it.py':
          'import unittest, solution\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(solution.double(2), 4)\n',
      });
      const check = {
        kind: 'in-process' as const,
        file: null,
        module: 'unittest',
        argv: ['unittest', '-q', 'test_it'],
        hidden,
      };
      const wrong = 'def double(n):\n    return 3\n';
      for (const [path, content] of [
        ['unittest.py', ''],
        ['unittest/__main__.py', ''],
        ['test_it/__init__.py', ''],
        ['sitecustomize.py', 'import os\nos._exit(0)\n'],
      ] as const) {
        const files = bytes({ 'solution.py': wrong, [path]: content });
        expect([path, graded(await box.grade(checkOf('', { ...check, files }))).passed]).toEqual([path, false]);
        const right = bytes({ 'solution.py': DOUBLE, [path]: content });
        expect([path, graded(await box.grade(checkOf('', { ...check, files: right }))).passed]).toEqual([path, true]);
      }
      const names = ['conftest.py', 'a/pytest.ini', 'setup.cfg', 'x.pth', '__pycache__/a.pyc', 'kept.py'];
      const list =
        "import os\nprint(sorted(os.path.join(f, n)[2:] for f, _, ns in os.walk('.') for n in ns if n != 'check.py'))";
      const seen = async (own: string[]) =>
        graded(
          await box.grade(
            checkOf('', { kind: 'in-process', files: bytes(Object.fromEntries(names.map((n) => [n, '']))), own }, list),
          ),
        ).stdout.toString();
      expect(await seen([])).toBe("['kept.py']\n");
      expect(await seen(['conftest.py', 'setup.cfg'])).toBe("['conftest.py', 'kept.py', 'setup.cfg']\n");
    });

    test('a module runs as with -m, and what it tests is what was laid', async () => {
      const test =
        'import unittest, solution\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(solution.double(2), 4)\n';
      const suite = (solution: string) =>
        box.grade(
          checkOf(solution, {
            kind: 'in-process',
            file: null,
            module: 'unittest',
            argv: ['unittest', '-q'],
            hidden: bytes({ 'test_it.py': test }),
          }),
        );
      expect(await suite(DOUBLE)).toMatchObject({ passed: true, level: reached['in-process'] });
      expect(await suite('def double(n):\n    return 3\n')).toMatchObject({
        passed: false,
        cause: 'exit',
        exitCode: 1,
      });
    });
  });
}
