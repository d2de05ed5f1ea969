// `template.format(**values)` as CPython 3.11 does it, for query templates (vectors/README.md, pitfall 17): names,
// `[index]` and `[key]`, `!r !s !a`, specs and specs within specs. Attributes are answered where they are plain
// facts about a value (`__class__.__name__`, `real`); everything else that Python would reach is refused.
import { isMap } from '../json/value.js';
import { FormatFault, lay, readSpec } from './format-spec.js';
import { formatFloat, formatInteger } from './number-format.js';
import { ascii, lengthOf, parseInteger, repr, str, typeName } from './text.js';
/** A class met on the way (`{facts.__class__}`). */
class TypeOf {
    name;
    constructor(name) {
        this.name = name;
    }
}
/** Throws FormatFault where Python raises. */
export function formatTemplate(template, values) {
    return build(template, values, 2);
}
function build(text, values, depth) {
    if (depth <= 0)
        throw new FormatFault('value', 'specs nested too deep');
    let out = '';
    let at = 0;
    while (at < text.length) {
        const c = text[at];
        if (c !== '{' && c !== '}') {
            out += c;
            at++;
            continue;
        }
        if (text[at + 1] === c) {
            out += c;
            at += 2;
            continue;
        }
        if (c === '}' || at + 1 >= text.length)
            throw new FormatFault('value', `a single '${c}'`);
        const field = readField(text, at + 1);
        // The value first: where both it and its spec are at fault, it is the one that counts.
        const item = convert(lookUp(field.name, values), field.conversion);
        out += show(item, field.nested ? build(field.spec, values, depth - 1) : field.spec);
        at = field.end;
    }
    return out;
}
function readField(text, start) {
    let at = start;
    let stop = '';
    while (at < text.length) {
        const c = text[at++];
        if (c === '{')
            throw new FormatFault('value', "'{' in a field name");
        if (c === '[') {
            while (at < text.length && text[at] !== ']')
                at++;
        }
        else if (c === '}' || c === ':' || c === '!') {
            stop = c;
            break;
        }
    }
    if (stop === '')
        throw new FormatFault('value', "no '}' before the end");
    const name = text.slice(start, at - 1);
    if (stop === '}')
        return { name, conversion: null, spec: '', nested: false, end: at };
    let conversion = null;
    if (stop === '!') {
        const mark = text.codePointAt(at);
        if (mark === undefined)
            throw new FormatFault('value', 'no conversion before the end');
        conversion = String.fromCodePoint(mark);
        at += conversion.length;
        if (at < text.length) {
            const next = text[at++];
            if (next === '}')
                return { name, conversion, spec: '', nested: false, end: at };
            if (next !== ':')
                throw new FormatFault('value', "':' is expected after the conversion");
        }
    }
    const from = at;
    let open = 1;
    let nested = false;
    while (at < text.length) {
        const c = text[at++];
        if (c === '{') {
            nested = true;
            open++;
        }
        else if (c === '}' && --open === 0) {
            return { name, conversion, spec: text.slice(from, at - 1), nested, end: at };
        }
    }
    throw new FormatFault('value', "an unmatched '{' in a spec");
}
function lookUp(name, values) {
    const first = /^[^.[]*/.exec(name)?.[0] ?? '';
    if (first === '' || parseDigits(first) !== null)
        throw new FormatFault('value', 'there are no positional values');
    const value = values.get(first);
    if (value === undefined)
        throw new FormatFault('value', 'no such name');
    let item = value;
    let at = first.length;
    while (at < name.length) {
        const mark = name[at++];
        if (mark === '.') {
            const attribute = /^[^.[]*/.exec(name.slice(at))?.[0] ?? '';
            if (attribute === '')
                throw new FormatFault('value', 'an empty attribute');
            item = attributeOf(item, attribute);
            at += attribute.length;
        }
        else if (mark === '[') {
            const close = name.indexOf(']', at);
            if (close < 0)
                throw new FormatFault('value', "a missing ']'");
            if (close === at)
                throw new FormatFault('value', 'an empty index');
            item = itemOf(item, name.slice(at, close));
            at = close + 1;
        }
        else
            throw new FormatFault('value', "only '.' or '[' may follow ']'");
    }
    return item;
}
function parseDigits(text) {
    return /^\p{Nd}+$/u.test(text) ? parseInteger(text) : null;
}
function itemOf(item, key) {
    if (item instanceof TypeOf)
        throw new FormatFault('leaves', 'a type takes no such index');
    const index = parseDigits(key);
    if (isMap(item)) {
        const found = index === null ? item.get(key) : undefined;
        if (found === undefined)
            throw new FormatFault('value', 'no such key');
        return found;
    }
    if (!Array.isArray(item) && typeof item !== 'string')
        throw new FormatFault('leaves', `${typeName(item)} takes no index`);
    if (index === null)
        throw new FormatFault('leaves', 'the index must be a number');
    const found = Array.isArray(item) ? item[Number(index)] : [...item][Number(index)];
    if (found === undefined)
        throw new FormatFault('value', 'the index is out of range');
    return found;
}
function attributeOf(item, name) {
    if (item instanceof TypeOf) {
        if (name === '__name__' || name === '__qualname__')
            return item.name;
        if (name === '__module__')
            return 'builtins';
        if (name === '__class__')
            return new TypeOf('type');
    }
    else {
        if (name === '__class__')
            return new TypeOf(typeName(item));
        if (typeof item === 'bigint' || typeof item === 'boolean') {
            if (name === 'real' || name === 'numerator')
                return BigInt(item);
            if (name === 'imag')
                return 0n;
            if (name === 'denominator')
                return 1n;
        }
        if (typeof item === 'number') {
            if (name === 'real')
                return item;
            if (name === 'imag')
                return 0;
        }
    }
    throw new FormatFault('leaves', 'no such attribute');
}
function convert(item, conversion) {
    if (conversion === null)
        return item;
    if (!['r', 's', 'a'].includes(conversion))
        throw new FormatFault('value', 'an unknown conversion');
    if (item instanceof TypeOf)
        return `<class '${item.name}'>`;
    return conversion === 'r' ? repr(item) : conversion === 's' ? str(item) : ascii(item);
}
function show(item, spec) {
    if (spec === '')
        return item instanceof TypeOf ? `<class '${item.name}'>` : str(item);
    if (typeof item === 'string')
        return formatText(item, readSpec(spec, false));
    if (typeof item === 'bigint')
        return formatInteger(item, readSpec(spec, true));
    if (typeof item === 'boolean')
        return formatInteger(item ? 1n : 0n, readSpec(spec, true));
    if (typeof item === 'number')
        return formatFloat(item, readSpec(spec, true));
    throw new FormatFault('leaves', 'this type takes no format spec');
}
function formatText(text, spec) {
    if ((spec.type !== '' && spec.type !== 's') || spec.sign || spec.alternate || spec.noNegativeZero || spec.grouping)
        throw new FormatFault('value', 'not allowed for text');
    if (spec.align === '=')
        throw new FormatFault('value', "'=' is not for text");
    const cut = spec.precision === null || lengthOf(text) <= spec.precision ? text : [...text].slice(0, spec.precision).join('');
    return lay('', '', cut, '', spec, '<');
}
