// pytest as a check: in process, with the proof that it came to its end. What it finds is what the task laid.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Box, Check } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { pytestImage } from '../support/pytest-image.ts';
import { bytes, LABELS, LIMITS } from './sandbox-contract.ts';
import { checkOf, DOUBLE, graded } from './sandbox-grade-contract.ts';

const TEST = `
import pytest, solution

@pytest.fixture
def three(): return 3

@pytest.mark.parametrize('n', [0, 1, -4])
def test_double(n, three): assert solution.double(n * three) == 2 * n * three
`;

describe('a check by pytest', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;

  beforeAll(async () => {
    const image = await pytestImage();
    await driver.prepare(image);
    box = await driver.open({ ...LIMITS, image }, LABELS, new AbortController().signal);
  });
  afterAll(() => driver.close());

  async function suite(solution: string, over: Partial<Check> = {}) {
    const check = checkOf(solution, {
      kind: 'in-process',
      file: null,
      module: 'pytest',
      argv: ['pytest', '-q', '-p', 'no:cacheprovider', 'test_double.py'],
      hidden: bytes({ 'test_double.py': TEST }),
      timeoutMs: 60_000,
      ...over,
    });
    return graded(await box.grade(check));
  }

  for (const warm of [false, true]) {
    test(`passes what is right and fails what is wrong${warm ? ', warm' : ''}`, async () => {
      expect(await suite(DOUBLE, { warm })).toMatchObject({ passed: true, level: 'in-process', exitCode: 0 });
      const wrong = await suite('def double(n):\n    return 3 * n\n', { warm });
      expect(wrong).toMatchObject({ passed: false, cause: 'exit', exitCode: 1 });
      expect(wrong.stdout.toString()).toContain('2 failed, 1 passed');
    });
  }

  test('has not passed without a single test, or where a file cannot be imported', async () => {
    expect(await suite(DOUBLE, { hidden: bytes({ 'test_double.py': '' }) })).toMatchObject({
      passed: false,
      exitCode: 5,
    });
    expect(await suite('raise ImportError("no")\n')).toMatchObject({ passed: false, exitCode: 2 });
  });

  test.each([
    ['ends the process as if all were well', 'import os\nos._exit(0)\n'],
    [
      'ends it at the end of its work',
      'import atexit, os\natexit.register(os._exit, 0)\ndef double(n):\n    return 3 * n\n',
    ],
    ['raises SystemExit', 'raise SystemExit(0)\n'],
  ])('is not passed by what %s', async (_, solution) => {
    expect((await suite(solution)).passed).toBe(false);
  });

  test('takes no conftest, configuration or plugin of the agent’s', async () => {
    const skipping =
      'import pytest\ndef pytest_collection_modifyitems(items):\n    items[:] = []\ndef pytest_sessionfinish(session):\n    session.exitstatus = 0\n';
    const files = bytes({
      'solution.py': 'def double(n):\n    return 3 * n\n',
      'conftest.py': skipping,
      'pytest.ini': '[pytest]\naddopts = --collect-only\n',
      'plugin.pth': 'import os; os._exit(0)\n',
    });
    expect(await suite('', { files, own: ['solution.py'] })).toMatchObject({ passed: false, exitCode: 1 });
  });
});
