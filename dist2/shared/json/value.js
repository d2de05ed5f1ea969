// A JSON value that keeps what Python keeps: an int is a `bigint`, a float is a `number`, an object is a
// `Map` in insertion order. Tasks, actions, observations and verifier payloads are of this type, because
// crucible's digests and AmberTrace's cache keys depend on 1 not being 1.0 (vectors/README.md, pitfalls 1, 21).
// The farm's own records (outcomes, manifests) are plain JSON and do not use it.
export function isMap(value) {
    return value instanceof Map;
}
/** A map from entries, for environments that build observations by hand. */
export function mapOf(entries) {
    return new Map(Symbol.iterator in entries ? entries : Object.entries(entries));
}
/** Python's `==` on JSON values: deep, order-blind for objects, and type-lenient (1 == 1.0 == True). NaN is unequal to itself. */
export function pyEqual(a, b) {
    if (isNumeric(a) && isNumeric(b))
        return numericEqual(a, b);
    if (typeof a === 'string' || typeof b === 'string' || a === null || b === null)
        return a === b;
    if (Array.isArray(a) && Array.isArray(b))
        return a.length === b.length && a.every((x, i) => pyEqual(x, b[i]));
    if (isMap(a) && isMap(b)) {
        if (a.size !== b.size)
            return false;
        for (const [key, x] of a) {
            const y = b.get(key);
            if (y === undefined || !pyEqual(x, y))
                return false;
        }
        return true;
    }
    return false;
}
/** Same type, same value, all the way down (object order does not count): what replay demands where Python would be lenient. */
export function sameValue(a, b) {
    if (typeof a !== typeof b)
        return false;
    if (typeof a === 'number' && typeof b === 'number')
        return Object.is(a, b);
    if (Array.isArray(a) || Array.isArray(b)) {
        return (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((x, i) => sameValue(x, b[i])));
    }
    if (isMap(a) || isMap(b)) {
        if (!isMap(a) || !isMap(b) || a.size !== b.size)
            return false;
        for (const [key, x] of a) {
            const y = b.get(key);
            if (y === undefined || !sameValue(x, y))
                return false;
        }
        return true;
    }
    return a === b;
}
/** Python's truth: empty containers, "", 0, 0.0, None and False are false; NaN is true. */
export function pyTruthy(value) {
    if (value === undefined || value === null || value === false || value === '' || value === 0n)
        return false;
    if (typeof value === 'number')
        return value !== 0;
    if (Array.isArray(value))
        return value.length > 0;
    return isMap(value) ? value.size > 0 : true;
}
function isNumeric(value) {
    return typeof value === 'boolean' || typeof value === 'bigint' || typeof value === 'number';
}
function numericEqual(a, b) {
    const x = typeof a === 'boolean' ? BigInt(a) : a;
    const y = typeof b === 'boolean' ? BigInt(b) : b;
    // biome-ignore lint/suspicious/noDoubleEquals: JavaScript's == compares a bigint with a number by mathematical value, as Python does
    return x == y;
}
/** Code-point order, as Python sorts text; JavaScript's default order is by UTF-16 unit. A lone surrogate is a character of its own. */
export function compareCodePoints(a, b) {
    let i = 0;
    const end = Math.min(a.length, b.length);
    while (i < end && a.charCodeAt(i) === b.charCodeAt(i))
        i++;
    if (i === end)
        return a.length - b.length;
    // The difference may lie in the second half of a pair.
    if (i > 0 && (a.charCodeAt(i - 1) & 0xfc00) === 0xd800)
        i--;
    return a.codePointAt(i) - b.codePointAt(i);
}
