// JSON in bytes, as CPython's `json.loads(bytes)` takes it: UTF-8, UTF-16 or UTF-32, told by a byte order mark or by
// where the zero bytes stand, with lone surrogates let through (docs.python.org/3/library/json.html, "Character
// encodings"). Null where the bytes are no text in that encoding.
/** The text of `bytes`, without its byte order mark. */
export function decodeJsonBytes(bytes) {
    const [a, b, c, d] = bytes;
    if (bytes.length >= 4 && a === 0xff && b === 0xfe && c === 0 && d === 0)
        return utf32(bytes.subarray(4), false);
    if (bytes.length >= 4 && a === 0 && b === 0 && c === 0xfe && d === 0xff)
        return utf32(bytes.subarray(4), true);
    if (a === 0xff && b === 0xfe)
        return utf16(bytes.subarray(2), false);
    if (a === 0xfe && b === 0xff)
        return utf16(bytes.subarray(2), true);
    if (a === 0xef && b === 0xbb && c === 0xbf)
        return utf8(bytes.subarray(3));
    if (bytes.length >= 4) {
        if (a === 0)
            return b === 0 ? utf32(bytes, true) : utf16(bytes, true);
        if (b === 0)
            return c === 0 && d === 0 ? utf32(bytes, false) : utf16(bytes, false);
    }
    else if (bytes.length === 2) {
        if (a === 0)
            return utf16(bytes, true);
        if (b === 0)
            return utf16(bytes, false);
    }
    return utf8(bytes);
}
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
function utf8(bytes) {
    try {
        return strict.decode(bytes);
    }
    catch {
        return surrogates(bytes);
    }
}
// UTF-8 with surrogates written as three bytes each, which the strict decoder refuses.
function surrogates(bytes) {
    let text = '';
    let from = 0;
    try {
        for (let at = bytes.indexOf(0xed); at >= 0; at = bytes.indexOf(0xed, at + 1)) {
            const second = bytes[at + 1] ?? 0;
            const third = bytes[at + 2] ?? 0;
            if (second < 0xa0 || second > 0xbf || third < 0x80 || third > 0xbf)
                continue;
            text += strict.decode(bytes.subarray(from, at));
            text += String.fromCharCode(0xd000 | ((second & 0x3f) << 6) | (third & 0x3f));
            from = at + 3;
        }
        return text + strict.decode(bytes.subarray(from));
    }
    catch {
        return null;
    }
}
function utf16(bytes, big) {
    if (bytes.length % 2 !== 0)
        return null;
    return (big ? Buffer.from(bytes).swap16() : bytes).toString('utf16le');
}
function utf32(bytes, big) {
    if (bytes.length % 4 !== 0)
        return null;
    const parts = [];
    for (let at = 0; at < bytes.length; at += 4) {
        const code = big ? bytes.readUInt32BE(at) : bytes.readUInt32LE(at);
        if (code > 0x10ffff)
            return null;
        parts.push(String.fromCodePoint(code));
    }
    return parts.join('');
}
