// Takes a secret out of a value that was read: its strings and the names in its maps. The raw text is not enough,
// since JSON can spell the same letters as escapes.
import { isMap } from '../../shared/json/value.js';
export function redactor(secret) {
    return secret === '' ? (text) => text : (text) => text.replaceAll(secret, '[redacted]');
}
/** Whether JSON text may have the secret in it: as it is, or spelled with escapes. */
export function mayHold(json, secret) {
    if (secret === '')
        return false;
    return json.includes(secret) || json.includes(/^[\w.:-]+$/.test(secret) ? '\\u' : '\\');
}
export function redactValue(value, redact) {
    if (typeof value === 'string')
        return redact(value);
    if (Array.isArray(value))
        return value.map((item) => redactValue(item, redact));
    if (!isMap(value))
        return value;
    return new Map([...value].map(([key, item]) => [redact(key), redactValue(item, redact)]));
}
