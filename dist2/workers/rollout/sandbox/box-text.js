// Text that crosses the border of a box: file names and arguments are bytes there, strings here.
// Bytes that are no UTF-8 become lone low surrogates U+DC80 to U+DCFF and come back as the same bytes, as in Python
// ("surrogateescape"); any other lone surrogate stands for no byte and is refused.
const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const LONE = /\p{Surrogate}/u;
/** Null: a lone surrogate that stands for no byte. */
export function encodeText(text) {
    if (!LONE.test(text))
        return Buffer.from(text, 'utf8');
    const parts = [];
    for (const point of text) {
        const code = point.codePointAt(0);
        if (code >= 0xdc80 && code <= 0xdcff)
            parts.push(Buffer.of(code - 0xdc00));
        else if (code >= 0xd800 && code <= 0xdfff)
            return null;
        else
            parts.push(Buffer.from(point, 'utf8'));
    }
    return Buffer.concat(parts);
}
export function decodeText(bytes) {
    try {
        return STRICT.decode(bytes);
    }
    catch {
        let text = '';
        for (let at = 0; at < bytes.length;) {
            const lead = bytes[at];
            const size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
            try {
                text += STRICT.decode(bytes.subarray(at, at + size));
                at += size;
            }
            catch {
                text += String.fromCharCode(0xdc00 + lead);
                at += 1;
            }
        }
        return text;
    }
}
/** Code-point order (the order of the UTF-8 bytes), which is not that of JavaScript's `<` beyond the BMP. */
export function byCodePoint(a, b) {
    const bytesA = encodeText(a) ?? Buffer.from(a);
    const bytesB = encodeText(b) ?? Buffer.from(b);
    return Buffer.compare(bytesA, bytesB);
}
/** A relative POSIX path, normalised without looking at any disk. What leaves the work folder is an escape. */
export function placePath(path) {
    if (path.startsWith('/'))
        return { status: 'escape', message: 'an absolute path' };
    const parts = [];
    for (const part of path.split('/')) {
        if (part === '' || part === '.')
            continue;
        if (part !== '..')
            parts.push(part);
        else if (parts.pop() === undefined)
            return { status: 'escape', message: 'it leads out of the work folder' };
    }
    if (parts.length === 0)
        return { status: 'unusable', message: 'it names no file' };
    const inside = parts.join('/');
    if (inside.includes('\0'))
        return { status: 'unusable', message: 'it contains a NUL' };
    const bytes = encodeText(inside);
    if (bytes === null)
        return { status: 'unusable', message: 'it contains a lone surrogate' };
    return { status: 'inside', path: inside, bytes };
}
