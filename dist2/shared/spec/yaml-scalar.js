// What a plain (unquoted) YAML scalar means, by the rules of YAML 1.1 that PyYAML follows: `no` is false, `017` is
// fifteen, `1:30` is ninety, `1e-6` is text because a float needs a point and a signed exponent.
// Dates stay text: JSON has no date, and nothing here means one.
const NULL = /^(?:~|null|Null|NULL|)$/;
const TRUE = /^(?:yes|Yes|YES|true|True|TRUE|on|On|ON)$/;
const FALSE = /^(?:no|No|NO|false|False|FALSE|off|Off|OFF)$/;
const INT = /^[-+]?(?:0b[01_]+|0x[\da-fA-F_]+|0[0-7_]*|[1-9][\d_]*(?::[0-5]?\d)*)$/;
const FLOAT = /^(?:[-+]?\d[\d_]*\.[\d_]*(?:[eE][-+]\d+)?|\.\d[\d_]*(?:[eE][-+]\d+)?|[-+]?\d[\d_]*(?::[0-5]?\d)+\.[\d_]*)$/;
const INFINITE = /^[-+]?\.(?:inf|Inf|INF)$/;
const NAN = /^\.(?:nan|NaN|NAN)$/;
/** Longer digit runs are refused by CPython's int(); here they stay text. */
const MAX_DIGITS = 4300;
/** Fewer digits of another base may stand for more decimal ones. */
const BEYOND = 10n ** BigInt(MAX_DIGITS);
export function plainScalar(text) {
    if (NULL.test(text))
        return null;
    if (TRUE.test(text))
        return true;
    if (FALSE.test(text))
        return false;
    if (INT.test(text))
        return integer(text) ?? text;
    if (FLOAT.test(text))
        return float(text);
    if (INFINITE.test(text))
        return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    return NAN.test(text) ? Number.NaN : text;
}
function integer(text) {
    const negative = text.startsWith('-');
    const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
    if (digits.length > MAX_DIGITS || digits === '0b' || digits === '0x')
        return null;
    const sized = digits.includes(':')
        ? digits.split(':').reduce((sum, part) => sum * 60n + BigInt(part), 0n)
        : BigInt(/^0[0-7]/.test(digits) ? `0o${digits}` : digits);
    if (sized >= BEYOND)
        return null;
    return negative ? -sized : sized;
}
function float(text) {
    const sign = text.startsWith('-') ? -1 : 1;
    const digits = text.replace(/^[-+]/, '').replaceAll('_', '');
    return sign * digits.split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
}
