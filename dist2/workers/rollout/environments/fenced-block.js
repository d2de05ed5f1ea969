// The part of a completion that is meant as the action: its last fenced block, else all of it. A fence is three or more
// backticks or tildes alone on a line (an info word may follow the opening one); a block that never closes runs to the end.
const OPEN = /^ {0,3}(`{3,}|~{3,})[^`]*$/;
export function fencedBlock(text) {
    if (!text.includes('```') && !text.includes('~~~'))
        return text;
    let block = null;
    let fence = null;
    let start = 0;
    for (let at = 0; at <= text.length;) {
        const newline = text.indexOf('\n', at);
        const end = newline < 0 ? text.length : newline;
        const next = newline < 0 ? text.length + 1 : newline + 1;
        // A fence is short; a longer line cannot be one.
        const line = end - at > 200 ? '' : text.slice(at, end).trimEnd();
        if (fence === null) {
            const mark = OPEN.exec(line)?.[1];
            if (mark !== undefined) {
                fence = mark;
                start = next;
            }
        }
        else if (closes(line, fence)) {
            block = text.slice(start, at);
            fence = null;
        }
        at = next;
    }
    if (fence !== null)
        block = text.slice(start);
    return block ?? text;
}
function closes(line, fence) {
    const mark = line.trimStart();
    return mark.length >= fence.length && mark === fence[0].repeat(mark.length);
}
/** A block as one argument or query: without the line end before the closing fence. */
export function fencedText(text) {
    return fencedBlock(text).replace(/\r?\n$/, '');
}
