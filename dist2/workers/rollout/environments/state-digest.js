// crucible's digests: the first 16 hex digits of the SHA-256 of a text that spells out the state.
import { createHash } from 'node:crypto';
import { compareCodePoints } from '../../../shared/json/value.js';
import { str } from '../../../shared/python/text.js';
export function stateDigest(text) {
    return createHash('sha256').update(text, 'utf8').digest('hex').slice(0, 16);
}
/** Task, whether it is solved, and how many attempts it took. */
export function attemptDigest(task, solved, attempts) {
    return stateDigest(`${str(task)}:${str(solved)}:${attempts}`);
}
/** Files in path order and whether they passed. */
export function filesDigest(files, passed) {
    const hash = createHash('sha256');
    [...files.keys()].sort(compareCodePoints).forEach((path, i) => {
        hash.update(`${i === 0 ? '' : '\n'}${path}=`, 'utf8').update(str(files.get(path)), 'utf8');
    });
    return hash
        .update(`|${str(passed)}`, 'utf8')
        .digest('hex')
        .slice(0, 16);
}
