// A text as `json.dumps` writes it: ASCII only, lower-case `\uXXXX`, lone surrogates kept. Long texts are written
// into bytes, because megabytes of characters that each need an escape would otherwise hold a worker up for seconds.
const SHORT = {
    '"': '\\"',
    '\\': '\\\\',
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
    '\b': '\\b',
    '\f': '\\f',
};
const LONG_TEXT = 4_096;
const HEX = Buffer.from('0123456789abcdef');
const BACKSLASH = 92;
const QUOTE = 34;
/** The letter after the backslash for a character that has a short escape, else 0. */
const LETTER = Uint8Array.from({ length: 128 }, (_, code) => SHORT[String.fromCharCode(code)]?.charCodeAt(1) ?? 0);
export function dumpText(text) {
    return text.length < LONG_TEXT ? `"${text.replace(/["\\\u0000-\u001f\u007f-\uffff]/g, escapeUnit)}"` : dumpLong(text);
}
function escapeUnit(c) {
    return SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
function isPlain(code) {
    return code >= 32 && code < 127 && code !== QUOTE && code !== BACKSLASH;
}
function dumpLong(text) {
    let size = 2;
    for (let i = 0; i < text.length; i++) {
        const code = text.charCodeAt(i);
        size += isPlain(code) ? 1 : LETTER[code] ? 2 : 6;
    }
    if (size === text.length + 2)
        return `"${text}"`;
    const out = Buffer.allocUnsafe(size);
    let at = 0;
    out[at++] = QUOTE;
    for (let i = 0; i < text.length; i++) {
        const code = text.charCodeAt(i);
        if (isPlain(code)) {
            out[at++] = code;
            continue;
        }
        out[at++] = BACKSLASH;
        const letter = LETTER[code];
        if (letter) {
            out[at++] = letter;
            continue;
        }
        out[at++] = 117;
        for (const shift of [12, 8, 4, 0])
            out[at++] = HEX[(code >> shift) & 15];
    }
    out[at] = QUOTE;
    return out.toString('latin1', 0, size);
}
