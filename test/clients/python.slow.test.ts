// The Python client's own tests, with this machine's Python: they need nothing but its standard library.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const FOLDER = fileURLToPath(new URL('../../clients/python', import.meta.url));

function python(...args: string[]) {
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' };
  return spawnSync('python3', args, { cwd: FOLDER, env, encoding: 'utf8', timeout: 280_000 });
}

const usable = python('-c', 'import sys; sys.exit(sys.version_info < (3, 9))').status === 0;

test('the tests of clients/python pass', { timeout: 300_000 }, () => {
  expect(usable, 'python3 3.9 or newer is needed; ./farm test installs it').toBe(true);
  const { stderr, status } = python('-W', 'error::ResourceWarning', '-m', 'unittest');
  expect(stderr).toMatch(/^Ran [1-9]\d* tests/m);
  expect(status, stderr).toBe(0);
});
