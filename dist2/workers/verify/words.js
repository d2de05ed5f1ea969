// Finding a text as a whole word, as Python's `\b` and digit look-arounds would: every script's letters and digits
// count as word characters (vectors/README.md, pitfall 11).
import { strip } from '../../shared/python/text.js';
const WORD = /[\p{L}\p{N}_]/u;
const NUMERIC = /[\p{Nd}.]/u;
/** Whether `text` (lower case) names the rule. A name that ends in a non-word character then needs a word character beside it. */
export function namesRule(name, text) {
    const needle = strip(name).toLowerCase();
    return needle !== '' && hasWord(text, needle);
}
/** `\bneedle\b` */
export function hasWord(text, needle) {
    const first = WORD.test(firstOf(needle));
    const last = WORD.test(lastOf(needle));
    return occurs(text, needle, (before, after) => WORD.test(before) !== first && WORD.test(after) !== last);
}
/** The number, with neither a digit nor a point beside it. */
export function hasNumber(text, token) {
    return occurs(text, token, (before, after) => !NUMERIC.test(before) && !NUMERIC.test(after));
}
function occurs(text, needle, fits) {
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + 1)) {
        if (fits(lastOf(text.slice(Math.max(0, at - 2), at)), firstOf(text.slice(at + needle.length, at + needle.length + 2))))
            return true;
    }
    return false;
}
function firstOf(text) {
    const code = text.codePointAt(0);
    return code === undefined ? '' : String.fromCodePoint(code);
}
function lastOf(text) {
    const pair = text.slice(-2);
    return pair.length === 2 && pair.codePointAt(0) > 0xffff ? pair : text.slice(-1);
}
