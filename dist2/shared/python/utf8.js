// Decoding bytes as Python's text mode does: strict UTF-8, then CRLF and CR become LF. What cannot be decoded is
// named in CPython's words (byte, place, reason), because crucible puts that message into observations.
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** `bytes.decode('utf-8')`. */
export function pyDecode(bytes) {
    try {
        return { ok: true, text: strict.decode(bytes) };
    }
    catch {
        return { ok: false, error: decodeFault(bytes) };
    }
}
/** Text mode: decoded, with every line end as `\n`. */
export function pyDecodeText(bytes) {
    const decoded = pyDecode(bytes);
    return decoded.ok ? { ok: true, text: decoded.text.replace(/\r\n?/g, '\n') } : decoded;
}
/** The longest prefix that does not end inside a character: for output that a cap has cut. */
export function wholeCharacters(bytes) {
    let start = bytes.length - 1;
    while (start > 0 && bytes.length - start < 4 && (bytes[start] & 0xc0) === 0x80)
        start--;
    const need = start < 0 ? 0 : lengthOf(bytes[start]);
    return start >= 0 && need > bytes.length - start ? bytes.subarray(0, start) : bytes;
}
function lengthOf(lead) {
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
}
function decodeFault(bytes) {
    let at = 0;
    while (at < bytes.length) {
        const lead = bytes[at];
        const length = lengthOf(lead);
        if (length === 0)
            return fault(bytes, at, 1, 'invalid start byte');
        for (let i = 1; i < length; i++) {
            const byte = bytes[at + i];
            if (byte === undefined)
                return fault(bytes, at, i, 'unexpected end of data');
            if (!continues(lead, i, byte))
                return fault(bytes, at, i, 'invalid continuation byte');
        }
        at += length;
    }
    return "'utf-8' codec can't decode bytes";
}
// The second byte is narrower after E0 and F0 (overlong), ED (surrogates) and F4 (above U+10FFFF).
function continues(lead, index, byte) {
    if (byte < 0x80 || byte > 0xbf)
        return false;
    if (index > 1)
        return true;
    if (lead === 0xe0)
        return byte >= 0xa0;
    if (lead === 0xed)
        return byte <= 0x9f;
    if (lead === 0xf0)
        return byte >= 0x90;
    return lead !== 0xf4 || byte <= 0x8f;
}
function fault(bytes, at, length, reason) {
    if (length === 1) {
        const hex = bytes[at].toString(16).padStart(2, '0');
        return `'utf-8' codec can't decode byte 0x${hex} in position ${at}: ${reason}`;
    }
    return `'utf-8' codec can't decode bytes in position ${at}-${at + length - 1}: ${reason}`;
}
