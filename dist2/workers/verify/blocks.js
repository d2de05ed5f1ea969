// The delimited parts of a completion: the decision block and the stated reasoning. They are found as the library's
// expression `<decision>\s*(.*?)\s*</decision>` (DOTALL, IGNORECASE) would find them, but by a scan that takes
// linear time, because a completion must not be able to stall its worker.
import { afterSpace, beforeSpace } from './space.js';
// Python's IGNORECASE lets U+017F stand for s, and U+0130 and U+0131 for i.
const I = '[iI\\u0130\\u0131]';
const S = '[sS\\u017f]';
const DECISION = `[dD][eE][cC]${I}${S}${I}[oO][nN]`;
const REASONING = `[rR][eE][aA]${S}[oO][nN]${I}[nN][gG]`;
/** The decision block's text, or null where there is none. */
export function decisionBlock(completion) {
    return find(completion, DECISION)?.inner ?? null;
}
/** The stated reasoning: its own block, else the prose before the decision; null where there is nothing. */
export function reasoningOf(completion) {
    const block = find(completion, REASONING);
    if (block)
        return strip(block.inner) || null;
    return strip(completion.slice(0, find(completion, DECISION)?.start ?? completion.length)) || null;
}
function find(text, tag) {
    const open = new RegExp(`<${tag}>`, 'g').exec(text);
    if (!open)
        return null;
    const from = afterSpace(text, open.index + open[0].length);
    const close = new RegExp(`</${tag}>`, 'g');
    close.lastIndex = from;
    // Without a close after the first opening there is none after a later one.
    const end = close.exec(text);
    if (!end)
        return null;
    return { start: open.index, inner: text.slice(from, beforeSpace(text, end.index, from)) };
}
function strip(text) {
    const from = afterSpace(text, 0);
    return text.slice(from, beforeSpace(text, text.length, from));
}
