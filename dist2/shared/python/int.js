// Python's `int(value)` on JSON values. A refusal is a result with CPython's own words, because it ends up in
// records; numbers are truncated, text is read as `integerDigits` says.
import { cutCodePoints, integerDigits, MAX_INT_DIGITS, repr, typeName } from './text.js';
export function pyInt(value) {
    if (typeof value === 'bigint')
        return { ok: true, value };
    if (typeof value === 'boolean')
        return { ok: true, value: BigInt(value) };
    if (typeof value === 'number') {
        if (Number.isNaN(value))
            return { ok: false, error: 'cannot convert float NaN to integer' };
        if (!Number.isFinite(value))
            return { ok: false, error: 'cannot convert float infinity to integer' };
        return { ok: true, value: BigInt(Math.trunc(value)) };
    }
    if (typeof value === 'string')
        return intOfText(value);
    return {
        ok: false,
        error: `int() argument must be a string, a bytes-like object or a real number, not '${typeName(value)}'`,
    };
}
function intOfText(text) {
    const found = integerDigits(text);
    // CPython cuts the quoted text to 200 characters, and so the head of a long text is enough to quote.
    if (!found) {
        const shown = cutCodePoints(repr(cutCodePoints(text, 400)), 200);
        return { ok: false, error: `invalid literal for int() with base 10: ${shown}` };
    }
    if (found.digits.length > MAX_INT_DIGITS) {
        return {
            ok: false,
            error: `Exceeds the limit (${MAX_INT_DIGITS} digits) for integer string conversion: value has ${found.digits.length} digits; use sys.set_int_max_str_digits() to increase the limit`,
        };
    }
    const size = BigInt(found.digits);
    return { ok: true, value: found.negative ? -size : size };
}
