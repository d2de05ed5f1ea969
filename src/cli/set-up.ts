// The machine's set-up: a shell script of its own (infra/setup.sh), because it runs before there is anything of ours.

import { fileURLToPath } from 'node:url';
import { missingError } from '../shared/errors.ts';
import { runProgram } from './program.ts';

const SCRIPT = fileURLToPath(new URL('../../infra/setup.sh', import.meta.url));

/** Installs and starts what is missing; what it says goes to stderr. Throws FarmError (exit 3) where it cannot. */
export async function setUp(what: 'farm' | 'tests' = 'farm'): Promise<void> {
  const args = what === 'tests' ? [SCRIPT, 'tests'] : [SCRIPT];
  const code = await runProgram('bash', args, { stdio: ['ignore', 2, 2] });
  if (code !== 0)
    throw missingError('set_up', 'this machine could not be set up; see above', './farm doctor tells what is missing');
}
