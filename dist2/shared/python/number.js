// Python's `float(x)`, `int(x)` and true division of ints, on values: null where Python raises.
import { pyInt } from './int.js';
import { parseFloatText } from './text.js';
/** `float(value)`; an int beyond a double's range raises too. */
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
/** `int(value)` */
export function toInteger(value) {
    const read = pyInt(value ?? null);
    return read.ok ? read.value : null;
}
/** `a / b`: the double nearest to the quotient. `b` is not 0. Null where the quotient is beyond a double. */
export function divide(a, b) {
    const x = Number(a);
    const y = Number(b);
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y))
        return x / y;
    const negative = a < 0n !== b < 0n;
    const n = a < 0n ? -a : a;
    const d = b < 0n ? -b : b;
    if (n === 0n)
        return 0;
    // 66 bits of quotient and a sticky bit: more than a double holds, so one rounding is all that happens.
    const shift = 66 - (n.toString(2).length - d.toString(2).length);
    const top = shift >= 0 ? n << BigInt(shift) : n;
    const bottom = shift >= 0 ? d : d << BigInt(-shift);
    const scaled = top / bottom;
    const mantissa = Number((scaled << 1n) | (scaled * bottom === top ? 0n : 1n));
    const half = Math.trunc((-shift - 1) / 2);
    const quotient = mantissa * 2 ** half * 2 ** (-shift - 1 - half);
    return Number.isFinite(quotient) ? (negative ? -quotient : quotient) : null;
}
