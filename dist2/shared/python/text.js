// Python's view of text and values: `repr`, `str`, `ascii`, type names, `str.strip`, `int(text)`, code points.
// Query texts, observations, digests and error texts hold them, so they are data here, not decoration.
import { floatRepr } from '../json/json.js';
import { isMap } from '../json/value.js';
import { isPrintable } from './printable.js';
/** `type(value).__name__`. */
export function typeName(value) {
    if (value === null)
        return 'NoneType';
    if (typeof value === 'boolean')
        return 'bool';
    if (typeof value === 'bigint')
        return 'int';
    if (typeof value === 'number')
        return 'float';
    if (typeof value === 'string')
        return 'str';
    return Array.isArray(value) ? 'list' : 'dict';
}
/** `str(value)`. */
export function str(value) {
    return typeof value === 'string' ? value : repr(value);
}
/** `repr(value)`. */
export function repr(value) {
    if (value === null)
        return 'None';
    if (value === true)
        return 'True';
    if (value === false)
        return 'False';
    if (typeof value === 'bigint')
        return value.toString();
    if (typeof value === 'number')
        return floatRepr(value);
    if (typeof value === 'string')
        return quote(value);
    if (isMap(value))
        return `{${[...value].map(([key, x]) => `${quote(key)}: ${repr(x)}`).join(', ')}}`;
    return `[${value.map(repr).join(', ')}]`;
}
/** `ascii(value)`: `repr` with everything beyond ASCII escaped. */
export function ascii(value) {
    return repr(value).replace(/[^\x00-\x7f]/gu, (c) => escapeCode(c.codePointAt(0)));
}
const NAMED = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
function quote(text) {
    const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
    const body = text.replace(/[^\x20-\x5b\x5d-\x7e]/gu, (c) => {
        const code = c.codePointAt(0);
        return NAMED[c] ?? (isPrintable(code) ? c : escapeCode(code));
    });
    return `${mark}${mark === "'" ? body.replaceAll("'", "\\'") : body}${mark}`;
}
function escapeCode(code) {
    if (code <= 0xff)
        return `\\x${code.toString(16).padStart(2, '0')}`;
    if (code <= 0xffff)
        return `\\u${code.toString(16).padStart(4, '0')}`;
    return `\\U${code.toString(16).padStart(8, '0')}`;
}
/** What `str.strip`, `isspace` and `\s` call white space, as the inside of a regex set: U+001C..1F and U+0085 are, U+FEFF is not. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const IS_SPACE = new RegExp(`[${SPACE}]`);
export function isSpaceUnit(unit) {
    return IS_SPACE.test(String.fromCharCode(unit));
}
/** `text.strip()`. */
export function strip(text) {
    let start = 0;
    let end = text.length;
    while (start < end && isSpaceUnit(text.charCodeAt(start)))
        start++;
    while (end > start && isSpaceUnit(text.charCodeAt(end - 1)))
        end--;
    return text.slice(start, end);
}
/** `len(text)`: code points. */
export function lengthOf(text) {
    let length = text.length;
    for (let i = 1; i < text.length; i++) {
        const c = text.charCodeAt(i);
        const before = text.charCodeAt(i - 1);
        if (c >= 0xdc00 && c <= 0xdfff && before >= 0xd800 && before <= 0xdbff)
            length--;
    }
    return length;
}
/** The first `count` code points. */
export function cutCodePoints(text, count) {
    return text.length <= count ? text : [...text.slice(0, 2 * count)].slice(0, count).join('');
}
/** CPython refuses longer digit runs (`sys.int_info.default_max_str_digits`). */
export const MAX_INT_DIGITS = 4300;
const INT_TEXT = /^([+-]?)(\p{Nd}+(?:_\p{Nd}+)*)$/u;
/** The decimal digits of `int(text)` as ASCII with their sign: white space around, underscores between, any script. Null if it is none. */
export function integerDigits(text) {
    const match = INT_TEXT.exec(strip(text));
    if (!match)
        return null;
    const digits = match[2].replace(/[^0-9]/gu, (c) => (c === '_' ? '' : String(digitOf(c))));
    return { negative: match[1] === '-', digits };
}
/** `int(text)`, or null where Python raises. */
export function parseInteger(text) {
    const found = integerDigits(text);
    if (found === null || found.digits.length > MAX_INT_DIGITS)
        return null;
    const size = BigInt(found.digits);
    return found.negative ? -size : size;
}
const FLOAT_TEXT = /^[+-]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/i;
/** `float(text)`, or null where Python raises. */
export function parseFloatText(text) {
    const plain = strip(text).replace(/\p{Nd}/gu, (c) => String(digitOf(c)));
    const word = /^([+-]?)(?:(inf|infinity)|nan)$/i.exec(plain);
    if (word)
        return word[2] === undefined ? Number.NaN : word[1] === '-' ? -Infinity : Infinity;
    return FLOAT_TEXT.test(plain) ? Number(plain.replaceAll('_', '')) : null;
}
/** Decimal digits stand in unbroken runs that begin with a zero, ten to a script. */
function digitOf(c) {
    const code = c.codePointAt(0);
    let start = code;
    while (/\p{Nd}/u.test(String.fromCodePoint(start - 1)))
        start--;
    return (code - start) % 10;
}
/** What `text.encode()` says of the first lone surrogate, or null if the text can be encoded as UTF-8. */
export function surrogateFault(text) {
    if (!/\p{Cs}/u.test(text))
        return null;
    let position = 0;
    for (const c of text) {
        const code = c.codePointAt(0);
        if (code >= 0xd800 && code <= 0xdfff) {
            return `'utf-8' codec can't encode character '${escapeCode(code)}' in position ${position}: surrogates not allowed`;
        }
        position++;
    }
    return null;
}
/** `float(value)`, or null where Python raises (also for an int too large for a float). */
export function toFloat(value) {
    if (typeof value === 'number')
        return value;
    if (typeof value === 'boolean')
        return value ? 1 : 0;
    if (typeof value === 'string')
        return parseFloatText(value);
    if (typeof value !== 'bigint')
        return null;
    const number = Number(value);
    return Number.isFinite(number) ? number : null;
}
/** `a / b` of ints, rounded once; null where Python raises. */
export function divide(a, b) {
    if (b === 0n)
        return null;
    const [top, bottom] = [Number(a), Number(b)];
    if (Number.isSafeInteger(top) && Number.isSafeInteger(bottom))
        return top / bottom;
    const negative = a < 0n !== b < 0n;
    const n = a < 0n ? -a : a;
    const d = b < 0n ? -b : b;
    // 70 bits of quotient and a sticky bit below them, so that the one rounding is that of the exact quotient.
    const shift = 70 - (n.toString(2).length - d.toString(2).length);
    const [over, under] = shift >= 0 ? [n << BigInt(shift), d] : [n, d << BigInt(-shift)];
    const quotient = ((over / under) << 1n) | (over % under === 0n ? 0n : 1n);
    const number = Number(quotient) * 2 ** (-shift - 1);
    return Number.isFinite(number) ? (negative ? -number : number) : null;
}
