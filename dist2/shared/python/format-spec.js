// A format spec (`[[fill]align][sign][z][#][0][width][grouping][.precision][type]`) read as CPython 3.11 reads it,
// and the laying out of a number or a text by it.
import { parseInteger } from './text.js';
/**
 * Why `str.format` gave up. `value`: KeyError, IndexError or ValueError, on which the library keeps the raw
 * template; `leaves`: any other exception, which leaves the library's parser.
 */
export class FormatFault extends Error {
    kind;
    constructor(kind, message) {
        super(message);
        this.kind = kind;
    }
}
/** A width can come from a completion (`{name:{width}}`); beyond this no text is made. */
const MAX_WIDTH = 1_000_000;
const SPEC = /^(?:(.)?([<>=^]))?([ +-])?(z)?(#)?(0)?(\p{Nd}+)?([,_])?(?:\.(\p{Nd}+))?(.)?$/su;
/** `numeric`: the default alignment is to the right, so that a leading 0 means padding after the sign. */
export function readSpec(text, numeric) {
    const match = SPEC.exec(text);
    if (!match)
        throw new FormatFault('value', 'an invalid format spec');
    const [, fill, align, sign, z, hash, zero, widthText, grouping, precisionText, type] = match;
    // Digits of any script count.
    const number = (digits) => digits === undefined ? null : Number(parseInteger(digits) ?? Number.POSITIVE_INFINITY);
    const width = number(widthText) ?? 0;
    const precision = number(precisionText);
    if (width > MAX_WIDTH || (precision ?? 0) > MAX_WIDTH)
        throw new FormatFault('leaves', 'a width that no text should have');
    const spec = {
        fill: fill ?? (zero ? '0' : ' '),
        align: align ?? (zero && fill === undefined && numeric ? '=' : ''),
        sign: sign ?? '',
        noNegativeZero: z !== undefined,
        alternate: hash !== undefined,
        width,
        grouping: grouping ?? '',
        precision,
        type: type ?? '',
    };
    if (spec.grouping === ',' && !'defgEGF%'.includes(spec.type))
        throw new FormatFault('value', "',' does not go here");
    if (spec.grouping === '_' && !'defgEGF%boxX'.includes(spec.type))
        throw new FormatFault('value', "'_' does not go here");
    return spec;
}
/** Sign, prefix, digits and rest as one field of the spec's width. */
export function lay(sign, prefix, digits, rest, spec, side, group = 3) {
    const align = spec.align || side;
    let body = grouped(digits, spec.grouping, group);
    const fixed = sign.length + prefix.length + count(rest);
    if (align === '=' && spec.fill === '0' && /^[0-9a-fA-F]*$/.test(digits)) {
        let padded = digits;
        while (fixed + body.length < spec.width) {
            padded = `0${padded}`;
            body = spec.grouping ? grouped(padded, spec.grouping, group) : padded.padStart(spec.width - fixed, '0');
        }
    }
    const missing = Math.max(0, spec.width - fixed - count(body));
    if (align === '=')
        return sign + prefix + spec.fill.repeat(missing) + body + rest;
    const all = sign + prefix + body + rest;
    const left = align === '>' ? missing : align === '^' ? Math.floor(missing / 2) : 0;
    return spec.fill.repeat(left) + all + spec.fill.repeat(missing - left);
}
function grouped(digits, separator, group) {
    if (!separator || !/^[0-9a-fA-F]+$/.test(digits))
        return digits;
    const parts = [];
    for (let end = digits.length; end > 0; end -= group)
        parts.unshift(digits.slice(Math.max(0, end - group), end));
    return parts.join(separator);
}
function count(text) {
    let n = 0;
    for (const _ of text)
        n++;
    return n;
}
