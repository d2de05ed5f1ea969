// Where a value stands in a JSON text: found by scanning, and only when a message needs it, because a reader that
// kept a place for every value would double the memory of a large spec. The text is one that was read before.
/** The place of the key (in an object) or the item (in a list) that `path` leads to, or of its nearest parent that is there. */
export function locateJson(text, path) {
    let at = skipSpace(text, 0);
    let found = at;
    for (const step of path) {
        const next = typeof step === 'number' ? item(text, at, step) : member(text, at, step);
        if (next === null)
            break;
        found = next.key;
        at = next.value;
    }
    return spotAt(text, found);
}
export function spotAt(text, offset) {
    let line = 1;
    let start = 0;
    for (;;) {
        const end = text.indexOf('\n', start);
        if (end < 0 || end >= offset)
            return { line, column: offset - start + 1 };
        line++;
        start = end + 1;
    }
}
function member(text, open, key) {
    if (text[open] !== '{')
        return null;
    let at = skipSpace(text, open + 1);
    while (text[at] === '"') {
        const end = skipString(text, at);
        const value = skipSpace(text, skipSpace(text, end) + 1);
        if (JSON.parse(text.slice(at, end)) === key)
            return { key: at, value };
        at = skipSpace(text, skipValue(text, value));
        if (text[at] !== ',')
            return null;
        at = skipSpace(text, at + 1);
    }
    return null;
}
function item(text, open, index) {
    if (text[open] !== '[')
        return null;
    let at = skipSpace(text, open + 1);
    for (let i = 0; i < index; i++) {
        at = skipSpace(text, skipValue(text, at));
        if (text[at] !== ',')
            return null;
        at = skipSpace(text, at + 1);
    }
    return { key: at, value: at };
}
function skipSpace(text, from) {
    let at = from;
    for (;;) {
        const c = text.charCodeAt(at);
        if (c !== 32 && c !== 10 && c !== 13 && c !== 9 && c !== 0xfeff)
            return at;
        at++;
    }
}
function skipString(text, open) {
    let end = text.indexOf('"', open + 1);
    while (end > 0) {
        let slashes = 0;
        while (text.charCodeAt(end - 1 - slashes) === 92)
            slashes++;
        if (slashes % 2 === 0)
            return end + 1;
        end = text.indexOf('"', end + 1);
    }
    return text.length;
}
function skipValue(text, from) {
    let depth = 0;
    let at = from;
    while (at < text.length) {
        const c = text.charCodeAt(at);
        if (c === 34) {
            at = skipString(text, at);
            if (depth === 0)
                return at;
            continue;
        }
        if (c === 123 || c === 91)
            depth++;
        else if (c === 125 || c === 93) {
            if (depth === 0)
                return at;
            if (--depth === 0)
                return at + 1;
        }
        else if (c === 44 && depth === 0)
            return at;
        at++;
    }
    return at;
}
