// crucible's digests: the first 16 hex digits of the SHA-256 of a text that spells out the state.

import { createHash, hash } from 'node:crypto';
import { compareCodePoints, type Value } from '../../../shared/json/value.ts';
import { str } from '../../../shared/python/text.ts';

export function stateDigest(text: string): string {
  return hash('sha256', text, 'hex').slice(0, 16);
}

/** Task, whether it is solved, and how many attempts it took. */
export function attemptDigest(task: Value, solved: boolean, attempts: bigint): string {
  return stateDigest(`${str(task)}:${str(solved)}:${attempts}`);
}

/** Files in path order and whether they passed. */
export function filesDigest(files: ReadonlyMap<string, Value>, passed: boolean): string {
  const hash = createHash('sha256');
  [...files.keys()].sort(compareCodePoints).forEach((path, i) => {
    hash.update(`${i === 0 ? '' : '\n'}${path}=`, 'utf8').update(str(files.get(path) as Value), 'utf8');
  });
  return hash
    .update(`|${str(passed)}`, 'utf8')
    .digest('hex')
    .slice(0, 16);
}
