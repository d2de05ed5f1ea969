// A file that a person named.

import { readFileSync } from 'node:fs';
import { inputError, messageOf } from '../shared/errors.ts';

/** `said`: what messages call it. Throws FarmError (exit 2, `file_unreadable`). */
export function readNamedFile(file: string, said = file): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw inputError('file_unreadable', `${said} cannot be read: ${messageOf(error)}`);
  }
}
