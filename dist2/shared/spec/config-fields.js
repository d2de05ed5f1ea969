// The pieces that environment configs are checked with: one `Field` a key, every problem found at once and named by
// its path, unknown keys with the nearest known one. Messages say what was given and what is allowed.
import { dumpJson } from '../json/json.js';
import { isMap } from '../json/value.js';
import { surrogateFault } from '../python/text.js';
import { safePath } from '../safe-path.js';
export function checkFields(config, path, fields, problems) {
    if (!isMap(config)) {
        problems.push({ path, message: `${shown(config)} is given, an object is needed` });
        return;
    }
    const names = fields.map((field) => field.name);
    for (const key of config.keys()) {
        if (!names.includes(key))
            problems.push({ path: `${path}.${key}`, message: unknownKey(key, names) });
    }
    for (const field of fields) {
        const value = config.get(field.name);
        if (value !== undefined)
            field.check(value, `${path}.${field.name}`, problems);
        else if (field.fallback === undefined) {
            problems.push({ path: `${path}.${field.name}`, message: 'is missing, and has no default' });
        }
    }
}
/** Every field in order, with its default where it is missing. */
export function fillFields(config, fields) {
    return new Map(fields.map((field) => [field.name, config.get(field.name) ?? field.fallback ?? null]));
}
function unknownKey(key, names) {
    if (names.length === 0)
        return 'is unknown; there are no keys here';
    const nearest = names.map((name) => ({ name, far: distance(key, name) })).sort((a, b) => a.far - b.far)[0];
    const guess = nearest && nearest.far <= Math.max(2, nearest.name.length / 3) ? `; did you mean ${nearest.name}?` : '';
    return `is unknown${guess} (allowed: ${names.join(', ')})`;
}
/** Edit distance, of short words. */
function distance(a, b) {
    if (a.length > 40)
        return a.length;
    let row = Array.from({ length: b.length + 1 }, (_, i) => i);
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        for (let j = 1; j <= b.length; j++) {
            const swap = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
            next.push(Math.min(swap, row[j] + 1, next[j - 1] + 1));
        }
        row = next;
    }
    return row[b.length];
}
/** A given value for a message: its JSON, or what it is where that is long. */
export function shown(value) {
    if (typeof value === 'string' && value.length > 40)
        return `a text of ${value.length} characters`;
    if (Array.isArray(value))
        return value.length === 0 ? '[]' : `a list of ${value.length}`;
    if (isMap(value))
        return value.size === 0 ? '{}' : `an object of ${value.size}`;
    return dumpJson(value);
}
function fail(problems, path, value, allowed) {
    problems.push({ path, message: `${shown(value)} is given, ${allowed}` });
}
export const anything = () => { };
/** An int, or a float that is one (1.0): crucible takes both and keeps the type. */
export function isWhole(value) {
    return typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
}
export const aWhole = (value, path, problems) => {
    if (!isWhole(value))
        fail(problems, path, value, 'an integer is needed');
};
export const aText = (value, path, problems) => {
    if (typeof value !== 'string')
        fail(problems, path, value, 'text is needed');
};
/** Text that can be written as UTF-8. */
export const aWritableText = (value, path, problems) => {
    aText(value, path, problems);
    const fault = typeof value === 'string' ? surrogateFault(value) : null;
    if (fault)
        problems.push({ path, message: `cannot be written as UTF-8: ${fault}` });
};
/** What is told to the agent: crucible's digests also know a task without a text. */
export const aTask = (value, path, problems) => {
    if (typeof value !== 'string' && value !== null)
        fail(problems, path, value, 'text or null is needed');
};
export const aList = (value, path, problems) => {
    if (!Array.isArray(value))
        fail(problems, path, value, 'a list is needed');
};
export const aTimeout = (value, path, problems) => {
    const number = typeof value === 'bigint' || typeof value === 'number' ? Number(value) : Number.NaN;
    if (!Number.isFinite(number) || number <= 0)
        fail(problems, path, value, 'a number of seconds above 0 is needed');
};
export const anArgv = (value, path, problems) => {
    if (!Array.isArray(value) || value.length === 0) {
        fail(problems, path, value, 'a list of texts is needed: the program and its arguments');
        return;
    }
    value.forEach((word, i) => {
        if (typeof word !== 'string')
            fail(problems, `${path}[${i}]`, word, 'text is needed');
        else if (word.includes('\0') || surrogateFault(word) !== null || (i === 0 && word === ''))
            fail(problems, `${path}[${i}]`, word, 'it cannot be an argument of a program');
    });
};
/** Path → content, both text; what the paths are worth is found out where they are written. */
export const someFiles = (value, path, problems) => {
    if (!isMap(value)) {
        fail(problems, path, value, 'an object of path and text is needed');
        return;
    }
    for (const [name, content] of value) {
        if (typeof content !== 'string')
            fail(problems, `${path}[${dumpJson(name)}]`, content, 'text is needed');
    }
};
/** Files that will certainly be written: paths inside the work folder, content that UTF-8 can hold. */
export const writableFiles = (value, path, problems) => {
    someFiles(value, path, problems);
    if (!isMap(value))
        return;
    for (const [name, content] of value) {
        const at = `${path}[${shown(name)}]`;
        if (!safePath(name).ok)
            problems.push({ path: at, message: 'the path leads out of the work folder' });
        if (typeof content === 'string') {
            const fault = surrogateFault(content);
            if (fault)
                problems.push({ path: at, message: `cannot be written as UTF-8: ${fault}` });
        }
    }
};
export const oneOrMoreFiles = (value, path, problems) => {
    writableFiles(value, path, problems);
    if (isMap(value) && value.size === 0)
        problems.push({ path, message: 'at least one file is needed' });
};
