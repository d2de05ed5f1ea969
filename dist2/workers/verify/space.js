// White space of a completion by table: a policy may write millions of spaces, and a test of each by an expression
// would take seconds.
import { isSpaceUnit } from '../../shared/python/text.js';
const TABLE = Uint8Array.from({ length: 0x10000 }, (_, unit) => (isSpaceUnit(unit) ? 1 : 0));
/** Where the white space that begins at `from` ends. */
export function afterSpace(text, from) {
    let at = from;
    while (at < text.length && TABLE[text.charCodeAt(at)] === 1)
        at++;
    return at;
}
/** Where the white space that ends at `to` begins; not before `from`. */
export function beforeSpace(text, to, from) {
    let at = to;
    while (at > from && TABLE[text.charCodeAt(at - 1)] === 1)
        at--;
    return at;
}
