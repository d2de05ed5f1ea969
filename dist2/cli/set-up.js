// The machine's set-up: a shell script of its own (infra/setup.sh), because it runs before there is anything of ours.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { missingError } from '../shared/errors.js';
const SCRIPT = fileURLToPath(new URL('../../infra/setup.sh', import.meta.url));
/** Installs and starts what is missing; what it says goes to stderr. Throws FarmError (exit 3) where it cannot. */
export async function setUp(what = 'farm') {
    const code = await new Promise((resolve) => {
        const child = spawn('bash', what === 'tests' ? [SCRIPT, 'tests'] : [SCRIPT], { stdio: ['ignore', 2, 2] });
        child.once('error', () => resolve(127));
        child.once('exit', (exit, signal) => resolve(exit ?? (signal ? 130 : 1)));
    });
    if (code !== 0)
        throw missingError('set_up', 'this machine could not be set up; see above', './farm doctor tells what is missing');
}
