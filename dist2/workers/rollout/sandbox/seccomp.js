// The system calls that a box may make: data (infra/seccomp.json), given to the engine as text with every container, so
// that no file has to lie where the engine is. A list of what is allowed; tighter than Docker's own, see docs/sandbox.md.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { missingError } from '../../../shared/errors.js';
/** In the checkout; the compiled sources lie as deep as these. */
const PROFILE = fileURLToPath(new URL('../../../../infra/seccomp.json', import.meta.url));
/** One line of JSON, the comments left out. */
export function seccompProfile(file = PROFILE) {
    try {
        const drop = (key, value) => (key === 'comment' ? undefined : value);
        return JSON.stringify(JSON.parse(readFileSync(file, 'utf8'), drop));
    }
    catch (error) {
        throw missingError('seccomp_missing', `the list of system calls for sandboxes is not at ${file}`, 'put infra/seccomp.json of the checkout beside dist', error);
    }
}
