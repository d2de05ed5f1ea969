// What is wrong with a spec: every problem with its file, line and field, what was given and what is allowed.
// Values are shown shortened, and never where they look like a secret.
import { dumpJson } from '../json/json.js';
import { isMap } from '../json/value.js';
/** Looking goes on until this many: enough to see what is wrong, little enough to keep. */
export const MAX_PROBLEMS = 1000;
const PRINTED = 20;
/** In a longer line its number does not say enough. */
const LONG_LINE = 200;
/** Part of an address that another reader's message may quote. */
const PASSWORD = /(:\/\/[^/\s:@]*:)[^/\s@]+@/g;
/** Where many problems are found in one reading. */
export class ProblemList {
    items = [];
    get full() {
        return this.items.length >= MAX_PROBLEMS;
    }
    add(problem) {
        if (!this.full)
            this.items.push(problem);
    }
    has(path) {
        return this.items.some((problem) => problem.path === path);
    }
}
export function pathText(path) {
    return path.map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`)).join('');
}
/** A place in `text`, whose first line has the number `firstLine`: with the column where the line is long. */
export function placeOf(text, spot, firstLine = 1) {
    const line = firstLine + spot.line - 1;
    return lineLength(text, spot.line) > LONG_LINE ? { line, column: spot.column } : { line };
}
function lineLength(text, line) {
    let start = 0;
    for (let n = 1; n < line; n++)
        start = text.indexOf('\n', start) + 1;
    const end = text.indexOf('\n', start);
    return (end < 0 ? text.length : end) - start;
}
/** One line a problem, `file:line: field: message`, at most `most` of them, and how many more there are. */
export function printProblems(problems, most = PRINTED) {
    const lines = problems.slice(0, most).map(({ file, line, column, path, message }) => {
        const where = [file, line, column].filter((part) => part !== undefined).join(':');
        return oneLine(`${where}: ${path === '' ? '' : `${path}: `}${message}`.replace(PASSWORD, '$1(hidden)@'));
    });
    const more = problems.length - most;
    const uncounted = problems.length >= MAX_PROBLEMS;
    if (more > 0)
        lines.push(`… and ${uncounted ? 'at least ' : ''}${more} more`);
    else if (uncounted)
        lines.push(`… and perhaps more: looking ended at ${MAX_PROBLEMS} problems`);
    return lines.join('\n');
}
// A file's own text may stand in a line: it must not move the terminal's cursor or begin a line of its own.
function oneLine(text) {
    const clean = text.replace(/[\p{Cc}\p{Cs}\u2028\u2029]+/gu, ' ');
    return clean.length > 600 ? `${clean.slice(0, 599)}…` : clean;
}
/** A given value for a message: short, and hidden where it looks like a secret. */
export function show(value) {
    if (value === undefined)
        return 'nothing';
    if (isMap(value))
        return 'an object';
    if (Array.isArray(value))
        return value.length === 0 ? 'an empty list' : 'a list';
    if (typeof value !== 'string')
        return clip(dumpJson(value));
    if (value === '')
        return 'an empty text';
    return SECRET_LIKE.test(value) ? 'a text that looks like a secret (not shown)' : `the text ${clip(dumpJson(value))}`;
}
const SECRET_LIKE = /(?:^|[^a-z])(?:sk|pk|rk|at|hf|gh[opsu]|xox[abp]|AKIA|eyJ)[-_A-Z0-9a-z]{12,}|:\/\/[^/\s]*:[^/\s]*@/;
function clip(text) {
    return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
/** The allowed word that `word` was probably meant to be. */
function nearest(word, allowed) {
    let best = null;
    let least = Math.max(2, Math.floor(word.length / 3)) + 1;
    for (const candidate of allowed) {
        const distance = editDistance(word.slice(0, 64).toLowerCase(), candidate.toLowerCase());
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    return best;
}
/** `did you mean x? allowed: x, y, z` */
export function suggestion(word, allowed) {
    const near = nearest(word, allowed);
    return `${near === null ? '' : `did you mean ${near}? `}allowed: ${allowed.join(', ')}`;
}
function editDistance(a, b) {
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
