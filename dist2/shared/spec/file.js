// The bytes of a file that a spec is or names: read once, whole, and kept, so that what was checked is what is
// planned. Refused: folders and devices, more than 256 MB, lines above 64 MB, bytes that are not UTF-8.
import { isUtf8 } from 'node:buffer';
import { readFile, stat } from 'node:fs/promises';
import { sha256 } from '../claim.js';
const MAX_FILE_BYTES = 256 * 1024 * 1024;
const MAX_LINE_BYTES = 64 * 1024 * 1024;
const MAX_LINES = 10_000_000;
/** `shown` is the file's name in messages. */
export async function readBytes(file, shown) {
    const refuse = (message) => ({ ok: false, problem: { file: shown, path: '', message } });
    try {
        // Asked first: opening a pipe would wait for whoever writes it.
        const info = await stat(file);
        if (info.isDirectory())
            return refuse('is a folder, not a file');
        if (!info.isFile())
            return refuse('is not a regular file');
        if (info.size > MAX_FILE_BYTES)
            return refuse(`has ${Math.ceil(info.size / 2 ** 20)} MB; at most 256 MB are read`);
        const bytes = await readFile(file);
        return bytes.length > MAX_FILE_BYTES ? refuse('has more than 256 MB') : { ok: true, value: bytes };
    }
    catch (error) {
        const code = error.code;
        if (code === 'ENOENT' || code === 'ENOTDIR')
            return refuse('there is no such file');
        if (code === 'EACCES' || code === 'EPERM')
            return refuse('may not be read (permission denied)');
        return refuse(`cannot be read (${code ?? 'unknown error'})`);
    }
}
export async function readText(file, shown) {
    const read = await readBytes(file, shown);
    if (!read.ok)
        return read;
    if (isUtf8(read.value))
        return { ok: true, value: read.value.toString('utf8') };
    const line = 1 + count(read.value.subarray(0, firstBadLine(read.value).start));
    return { ok: false, problem: { file: shown, line, path: '', message: 'is not UTF-8 text' } };
}
/** A file of JSON lines: its bytes and where each line that is not blank begins. No value is kept. */
export class LineFile {
    shown;
    bytes;
    sha256;
    /** Lines that are not blank. */
    count;
    starts;
    ends;
    numbers;
    constructor(shown, bytes, starts, ends, numbers) {
        this.shown = shown;
        this.bytes = bytes;
        this.sha256 = sha256(bytes);
        this.count = starts.length;
        this.starts = Uint32Array.from(starts);
        this.ends = Uint32Array.from(ends);
        this.numbers = Uint32Array.from(numbers);
    }
    static of(bytes, shown) {
        const refuse = (message, line) => ({
            ok: false,
            problem: { file: shown, path: '', message, ...(line === undefined ? {} : { line }) },
        });
        const starts = [];
        const ends = [];
        const numbers = [];
        let number = 0;
        let at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
        while (at < bytes.length) {
            number++;
            const found = bytes.indexOf(10, at);
            const end = found < 0 ? bytes.length : found;
            if (end - at > MAX_LINE_BYTES)
                return refuse('the line has more than 64 MB', number);
            if (!blank(bytes, at, end)) {
                if (starts.length === MAX_LINES)
                    return refuse('has more than 10,000,000 lines');
                starts.push(at);
                ends.push(end);
                numbers.push(number);
            }
            at = end + 1;
        }
        if (!isUtf8(bytes))
            return refuse('the line is not UTF-8 text', 1 + count(bytes.subarray(0, firstBadLine(bytes).start)));
        return { ok: true, value: new LineFile(shown, bytes, starts, ends, numbers) };
    }
    text(index) {
        return this.bytes.toString('utf8', this.starts[index], this.ends[index]);
    }
    /** The line's number in the file, from 1. */
    line(index) {
        return this.numbers[index] ?? 0;
    }
}
function blank(bytes, start, end) {
    for (let i = start; i < end; i++) {
        const c = bytes[i];
        if (c !== 32 && c !== 9 && c !== 13)
            return false;
    }
    return true;
}
// A multi-byte character never holds a newline byte, so lines can be judged one by one.
function firstBadLine(bytes) {
    let start = 0;
    for (;;) {
        const end = bytes.indexOf(10, start);
        if (end < 0 || !isUtf8(bytes.subarray(start, end)))
            return { start };
        start = end + 1;
    }
}
function count(bytes) {
    let lines = 0;
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1))
        lines++;
    return lines;
}
