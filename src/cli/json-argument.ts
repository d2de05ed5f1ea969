// An argument that is JSON, or @FILE with JSON in it.

import { inputError, messageOf } from '../shared/errors.ts';
import { parseJson } from '../shared/json/json.ts';
import type { Value } from '../shared/json/value.ts';
import { readNamedFile } from './named-file.ts';

/** Throws FarmError (exit 2) naming the option and the place of the fault. */
export function jsonArgument(option: string, text: string): Value {
  let json = text;
  if (text.startsWith('@')) {
    const file = text.slice(1);
    json = readNamedFile(file, `${option}: ${file}`).toString('utf8');
  }
  try {
    return parseJson(json, { duplicates: 'error' });
  } catch (error) {
    throw inputError('json_invalid', `${option}: not JSON: ${messageOf(error)}`, 'give JSON, or @FILE');
  }
}
