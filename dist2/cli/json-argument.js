// An argument that is JSON, or @FILE with JSON in it.
import { readFileSync } from 'node:fs';
import { inputError, messageOf } from '../shared/errors.js';
import { parseJson } from '../shared/json/json.js';
/** Throws FarmError (exit 2) naming the option and the place of the fault. */
export function jsonArgument(option, text) {
    let json = text;
    if (text.startsWith('@')) {
        try {
            json = readFileSync(text.slice(1), 'utf8');
        }
        catch (error) {
            throw inputError('file_unreadable', `${option}: ${text.slice(1)} cannot be read: ${messageOf(error)}`);
        }
    }
    try {
        return parseJson(json, { duplicates: 'error' });
    }
    catch (error) {
        throw inputError('json_invalid', `${option}: not JSON: ${messageOf(error)}`, 'give JSON, or @FILE');
    }
}
