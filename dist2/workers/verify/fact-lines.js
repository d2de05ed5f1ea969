// The library's own two patterns, `^\s*fact\s+([\w.-]+)\s*:\s*(.+?)\s*$` and `^\s*answer\s*:\s*(.+?)\s*$` (lines, any
// case), as a scan in linear time: an expression takes time squared on blank lines, and completions choose how many
// there are. As in the patterns, white space crosses lines, so an empty value takes the line after it.
import { afterSpace, beforeSpace } from './space.js';
const NEWLINE = 10;
const COLON = 58;
const NAME = /[\p{L}\p{N}_.-]+/uy;
/** Name and value of each fact, unstripped. */
export function factLines(text) {
    const facts = [];
    let from = 0;
    for (;;) {
        const start = lineStart(text, from);
        if (start === null)
            return facts;
        const word = afterSpace(text, start);
        const fact = factAt(text, word);
        if (fact)
            facts.push([fact.name, fact.value]);
        // Every line start before the word leads to the same word.
        from = fact ? fact.end : word + 1;
    }
}
/** The value of the first answer line, unstripped. */
export function answerLine(text) {
    let from = 0;
    for (;;) {
        const start = lineStart(text, from);
        if (start === null)
            return null;
        const word = afterSpace(text, start);
        const found = isAnswer(text.slice(word, word + 6)) ? valueAfterColon(text, word + 6) : null;
        if (found)
            return found.value;
        from = word + 1;
    }
}
function factAt(text, at) {
    if (!/^fact$/i.test(text.slice(at, at + 4)))
        return null;
    const from = afterSpace(text, at + 4);
    if (from === at + 4)
        return null;
    NAME.lastIndex = from;
    const name = NAME.exec(text)?.[0];
    if (name === undefined)
        return null;
    const found = valueAfterColon(text, from + name.length);
    return found && { name, ...found };
}
// U+017F counts as an s where case does not.
function isAnswer(word) {
    return /^an[s\u017f]wer$/i.test(word);
}
/** The shortest value that ends its line, and where the match ends: before the last newline of the space after it. */
function valueAfterColon(text, from) {
    const colon = afterSpace(text, from);
    if (text.charCodeAt(colon) !== COLON)
        return null;
    const start = afterSpace(text, colon + 1);
    if (start === text.length)
        return lastBlank(text, colon + 1);
    const newline = text.indexOf('\n', start);
    const stop = beforeSpace(text, newline === -1 ? text.length : newline, start);
    const rest = afterSpace(text, stop);
    return { value: text.slice(start, stop), end: rest === text.length ? rest : text.lastIndexOf('\n', rest) };
}
/** Where nothing but space follows the colon, the value is the last of it that is no newline. */
function lastBlank(text, from) {
    let at = text.length - 1;
    while (at >= from && text.charCodeAt(at) === NEWLINE)
        at--;
    return at < from ? null : { value: text.charAt(at), end: text.length };
}
function lineStart(text, from) {
    if (from === 0 || text.charCodeAt(from - 1) === NEWLINE)
        return from <= text.length ? from : null;
    const newline = text.indexOf('\n', from);
    return newline === -1 ? null : newline + 1;
}
