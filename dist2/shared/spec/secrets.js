// Secrets come from the environment only (law 8): a key that names one, or an address with a password in it, is an
// error in any file of ours. Tasks and actions are content, not configuration: they may say what they like.
import { isMap } from '../json/value.js';
const SECRET = /(?:^|_)(?:api_?keys?|apikey|token|passwd|password|passphrase|secret|secret_key|access_key|private_key|authorization|credentials?)$/;
/** Tokenizers have tokens of another kind. */
const HARMLESS = /(?:^|_)(?:pad|eos|bos|unk|sep|cls|mask|stop|image|special|begin|end|first|last|per)_token$/;
export function isSecretKey(key) {
    const name = key
        .replace(/([a-z])([A-Z])/g, '$1_$2')
        .replace(/[-\s]/g, '_')
        .toLowerCase();
    return SECRET.test(name) && !HARMLESS.test(name);
}
/** Reports every secret of a spec by its key, never by its value. */
export function findSecrets(root, report) {
    const visit = (value, path) => {
        if (typeof value === 'string' && hasPassword(value))
            report(path, `holds an address with a password in it; give it by ${variable(path)}`);
        if (Array.isArray(value))
            for (const [i, child] of value.entries())
                visit(child, [...path, i]);
        if (!isMap(value))
            return;
        for (const [key, child] of value) {
            const here = [...path, key];
            if (here.length === 1 && key === 'tasks' && Array.isArray(child))
                continue;
            if (here.length === 2 && path[0] === 'policy' && key === 'actions')
                continue;
            if (isSecretKey(key))
                report(here, `a secret does not belong in a file; give ${key} by ${variable(here)}`);
            else
                visit(child, here);
        }
    };
    visit(root, []);
}
function hasPassword(text) {
    return /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]*:[^/?#\s]*@/i.test(text);
}
function variable(path) {
    if (path[0] === 'domain' || path[0] === 'verifier')
        return 'the environment variable AMBERTRACE_API_KEY';
    if (path[0] === 'policy')
        return 'the environment variable OPENAI_API_KEY';
    if (path[0] === 'store')
        return 'the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
    return 'an environment variable';
}
