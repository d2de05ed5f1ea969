// A file that a person named.

import { readFileSync } from 'node:fs';
import { inputError, messageOf } from '../shared/errors.ts';

/** Throws FarmError (exit 2, `file_unreadable`). */
export function readNamedFile(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw inputError('file_unreadable', `${file} cannot be read: ${messageOf(error)}`);
  }
}
