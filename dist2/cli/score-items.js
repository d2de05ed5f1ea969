// The items of `farm score`: JSON lines with a prompt, a completion and perhaps metadata. All are checked before anything
// is asked, so that line 9,000 does not spoil what the first 8,999 have cost.
import { once } from 'node:events';
import { EXIT, FarmError } from '../shared/errors.js';
import { JsonError, parseJson } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
import { LineFile, readBytes } from '../shared/spec/file.js';
import { printProblems } from '../shared/spec/problem.js';
/** So many items are read, asked and printed at a time. */
const SLICE = 2_000;
export class ScoreItems {
    lines;
    constructor(lines) {
        this.lines = lines;
        for (let i = 0; i < lines.count; i++)
            readItem(lines, i);
    }
    /** Throws FarmError (exit 2) that names the file and the line. */
    static async read(file) {
        return new ScoreItems(await readLines(file));
    }
    /** The items in their order, some at a time. */
    *slices() {
        for (let start = 0; start < this.lines.count; start += SLICE) {
            const items = Array.from({ length: Math.min(SLICE, this.lines.count - start) }, (_, i) => readItem(this.lines, start + i));
            yield { start, items };
        }
    }
}
function fail(problem) {
    throw new FarmError('input_invalid', printProblems([problem]), { exit: EXIT.input });
}
async function readLines(file) {
    const bytes = await readBytes(file, file);
    if (!bytes.ok)
        return fail(bytes.problem);
    const lines = LineFile.of(bytes.value, file);
    return lines.ok ? lines.value : fail(lines.problem);
}
function readItem(lines, index) {
    const refuse = (message) => fail({ file: lines.shown, line: lines.line(index), path: '', message });
    let value;
    try {
        value = parseJson(lines.text(index));
    }
    catch (error) {
        if (!(error instanceof JsonError))
            throw error;
        return refuse(`is not JSON: ${error.message}`);
    }
    if (!isMap(value))
        return refuse('must be an object with "prompt" and "completion"');
    const { prompt, completion } = { prompt: value.get('prompt'), completion: value.get('completion') };
    if (prompt === undefined)
        return refuse('"prompt" is missing');
    if (completion === undefined)
        return refuse('"completion" is missing');
    const metadata = value.get('metadata') ?? null;
    if (metadata !== null && !isMap(metadata))
        return refuse('"metadata" must be an object');
    return { prompt, completion, metadata };
}
/** Waits for a slow reader. */
export async function print(text) {
    if (!process.stdout.write(text))
        await once(process.stdout, 'drain');
}
