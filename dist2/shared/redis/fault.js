// What a failed command says about Redis: full, not to be written, or away.
import { messageOf } from '../errors.js';
const FULL = /\bOOM\b.*(command not allowed|maxmemory)/i;
const REPLICA = /\bREADONLY\b|\bMASTERDOWN\b|\bNOREPLICAS\b/;
export function redisFault(error) {
    const text = messageOf(error);
    if (FULL.test(text))
        return 'full';
    return REPLICA.test(text) ? 'replica' : 'away';
}
