// `farm test`: sets the machine up, then runs the checks and the whole suite. The last line is `N passed, N failed`.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { EXIT } from '../../shared/errors.ts';
import { runProgram } from '../program.ts';
import { setUp } from '../set-up.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const resultSchema = z.object({
  numPassedTests: z.int(),
  numFailedTests: z.int(),
  numFailedTestSuites: z.int(),
  success: z.boolean(),
});

export async function test(args: { filter: string[] }): Promise<number> {
  await setUp('tests');
  const folder = mkdtempSync(path.join(tmpdir(), 'farm-suite-'));
  try {
    const out = path.join(folder, 'result.json');
    const checked = args.filter.length > 0 ? 0 : await run('npm', ['run', '--silent', 'check']);
    const tested = await run(process.execPath, [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${out}`,
      ...args.filter,
    ]);
    const result = readResult(out);
    const passed = (result?.numPassedTests ?? 0) + (checked === 0 && args.filter.length === 0 ? 1 : 0);
    // A suite that could not be loaded has no failed test in it, and has failed all the same.
    const failed =
      (result?.numFailedTests ?? 1) + (checked === 0 ? 0 : 1) + (tested !== 0 && result?.numFailedTests === 0 ? 1 : 0);
    process.stdout.write(`${passed} passed, ${failed} failed\n`);
    return failed === 0 ? EXIT.ok : EXIT.unsound;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readResult(file: string): z.infer<typeof resultSchema> | null {
  try {
    return resultSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

function run(program: string, args: string[]): Promise<number> {
  return runProgram(program, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
}
