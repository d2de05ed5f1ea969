// The number half of Python's format specs: `format(7, '05d')`, `format(0.125, '.2f')`. Rounding is half to even on
// the exact binary value, which `toFixed` is not (vectors/README.md, pitfall 4).
import { floatRepr } from '../json/json.js';
import { FormatFault, lay } from './format-spec.js';
/** `format(integer, spec)` for a non-empty spec. */
export function formatInteger(value, spec) {
    const type = spec.type || 'd';
    if ('eEfFgG%'.includes(type)) {
        const number = Number(value);
        if (!Number.isFinite(number))
            throw new FormatFault('leaves', 'an int too large for a float');
        return formatFloat(number, spec);
    }
    if (!'bcdoxXn'.includes(type))
        throw new FormatFault('value', 'an unknown format code for an int');
    if (spec.precision !== null || spec.noNegativeZero)
        throw new FormatFault('value', 'not allowed for an int');
    if (type === 'c') {
        if (spec.sign || spec.alternate)
            throw new FormatFault('value', "not allowed with 'c'");
        if (value < 0n || value > 0x10ffffn)
            throw new FormatFault('leaves', 'not a code point');
        return lay('', '', String.fromCodePoint(Number(value)), '', { ...spec, grouping: '' }, '>');
    }
    const negative = value < 0n;
    const size = negative ? -value : value;
    const base = type === 'b' ? 2 : type === 'o' ? 8 : type === 'x' || type === 'X' ? 16 : 10;
    const digits = type === 'X' ? size.toString(16).toUpperCase() : size.toString(base);
    const prefix = spec.alternate && base !== 10 ? `0${type}` : '';
    return lay(signOf(negative, spec), prefix, digits, '', spec, '>', base === 10 ? 3 : 4);
}
/** `format(float, spec)` for a non-empty spec. */
export function formatFloat(value, spec) {
    const type = spec.type;
    if (type !== '' && !'eEfFgGn%'.includes(type))
        throw new FormatFault('value', 'an unknown format code for a float');
    const x = type === '%' ? value * 100 : value;
    let negative = x < 0 || Object.is(x, -0);
    let text;
    if (!Number.isFinite(x))
        text = Number.isNaN(x) ? 'nan' : 'inf';
    else
        text = finite(Math.abs(x), type, spec);
    if (Number.isNaN(x))
        negative = false;
    if (spec.noNegativeZero && !/[1-9]/.test(text.split(/e/i)[0]) && Number.isFinite(x))
        negative = false;
    if ('EFG'.includes(type) && type !== '')
        text = text.toUpperCase();
    const whole = /^\d*/.exec(text)?.[0] ?? '';
    return lay(signOf(negative, spec), '', whole || text, (whole ? text.slice(whole.length) : '') + (type === '%' ? '%' : ''), spec, '>');
}
function signOf(negative, spec) {
    return negative ? '-' : spec.sign === '+' || spec.sign === ' ' ? spec.sign : '';
}
function finite(x, type, spec) {
    const kind = type.toLowerCase();
    if (kind === '' && spec.precision === null)
        return withPoint(floatRepr(x), spec.alternate);
    const precision = spec.precision ?? 6;
    if (kind === 'f' || kind === '%') {
        const digits = scaled(x, precision)
            .toString()
            .padStart(precision + 1, '0');
        const point = digits.length - precision;
        return `${digits.slice(0, point)}${precision > 0 || spec.alternate ? '.' : ''}${digits.slice(point)}`;
    }
    if (kind === 'e') {
        const { digits, exponent } = significant(x, precision + 1);
        return exponential(digits, exponent, spec.alternate);
    }
    // 'g', 'n', and no type with a precision (which always shows a digit after the point)
    const places = Math.max(precision, 1);
    const { digits, exponent } = significant(x, places);
    const kept = spec.alternate ? digits : digits.replace(/0+$/, '') || '0';
    if (exponent < -4 || exponent + 1 > places - (kind === '' ? 1 : 0))
        return exponential(kept, exponent, spec.alternate);
    if (exponent < 0)
        return `0.${'0'.repeat(-exponent - 1)}${kept}`;
    const whole = kept.slice(0, exponent + 1).padEnd(exponent + 1, '0');
    const rest = kept.slice(exponent + 1);
    if (rest)
        return `${whole}.${rest}`;
    return kind === '' ? `${whole}.0` : spec.alternate ? `${whole}.` : whole;
}
function withPoint(text, alternate) {
    return alternate && !text.includes('.') ? text.replace('e', '.e') : text;
}
function exponential(digits, exponent, alternate) {
    const rest = digits.slice(1);
    const sign = exponent < 0 ? '-' : '+';
    return `${digits[0]}${rest || alternate ? '.' : ''}${rest}e${sign}${String(Math.abs(exponent)).padStart(2, '0')}`;
}
/** The exact value as a fraction of two ints. */
function fraction(x) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    const bits = view.getBigUint64(0);
    const biased = Number((bits >> 52n) & 0x7ffn);
    const mantissa = (bits & 0xfffffffffffffn) | (biased === 0 ? 0n : 1n << 52n);
    const power = Math.max(biased, 1) - 1075;
    return power >= 0 ? { n: mantissa << BigInt(power), d: 1n } : { n: mantissa, d: 1n << BigInt(-power) };
}
function halfEven(n, d) {
    const whole = n / d;
    const twice = (n % d) * 2n;
    return twice > d || (twice === d && whole % 2n === 1n) ? whole + 1n : whole;
}
/** `x * 10 ** places`, rounded half to even. */
function scaled(x, places) {
    const { n, d } = fraction(x);
    return places >= 0 ? halfEven(n * 10n ** BigInt(places), d) : halfEven(n, d * 10n ** BigInt(-places));
}
/** `count` significant digits and the exponent of the first. */
function significant(x, count) {
    if (x === 0)
        return { digits: '0'.repeat(count), exponent: 0 };
    let exponent = Number(x.toExponential().split('e')[1]);
    // The shortest text can stand on the other side of a power of ten than the exact value (1e-7 is 9.99…e-8).
    const { n, d } = fraction(x);
    if (exponent < 0 ? n * 10n ** BigInt(-exponent) < d : n < d * 10n ** BigInt(exponent))
        exponent--;
    let digits = scaled(x, count - 1 - exponent).toString();
    if (digits.length > count) {
        exponent++;
        digits = scaled(x, count - 1 - exponent).toString();
    }
    return { digits, exponent };
}
