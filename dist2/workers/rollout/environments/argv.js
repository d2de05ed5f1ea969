// An action as a command line, by the rules of `list(action)` and of CPython's subprocess: what raises there, what is a
// launch error there, and what can run. Nothing that an action holds gets further than here unless it can run.
import { parseJson } from '../../../shared/json/json.js';
import { isMap } from '../../../shared/json/value.js';
import { repr, surrogateFault, typeName } from '../../../shared/python/text.js';
import { fencedText } from './fenced-block.js';
/** Linux: one argument at most 32 pages, all of them a quarter of the stack. */
const ARGUMENT_BYTES = 131_071;
const ALL_BYTES = 2 * 1024 * 1024 - 64 * 1024;
export function argvOf(action) {
    let words;
    if (typeof action === 'string') {
        // A text this long is a list too long for any program, character by character.
        if (action.length > ALL_BYTES)
            return { kind: 'launch', error: tooLong(action.slice(0, 1)) };
        words = [...action];
    }
    else if (Array.isArray(action))
        words = action;
    else if (isMap(action))
        words = [...action.keys()];
    else
        return { kind: 'raises', counted: false, error: `'${typeName(action)}' object is not iterable` };
    if (words.length === 0)
        return { kind: 'raises', counted: true, error: 'list index out of range' };
    let bytes = 0;
    let longest = 0;
    for (const word of words) {
        if (typeof word !== 'string') {
            const error = `expected str, bytes or os.PathLike object, not ${typeName(word)}`;
            return { kind: 'raises', counted: true, error };
        }
        const fault = surrogateFault(word) ?? (word.includes('\0') ? 'embedded null byte' : null);
        if (fault)
            return { kind: 'launch', error: fault };
        const size = Buffer.byteLength(word);
        longest = Math.max(longest, size);
        bytes += size + 9;
    }
    const argv = words;
    if (longest > ARGUMENT_BYTES || bytes > ALL_BYTES)
        return { kind: 'launch', error: tooLong(argv[0]) };
    // Looked up along PATH, a name without characters is each folder itself.
    if (argv[0] === '')
        return { kind: 'launch', error: "[Errno 13] Permission denied: ''" };
    return { kind: 'argv', argv };
}
function tooLong(program) {
    return `[Errno 7] Argument list too long: ${repr(program.slice(0, 4096))}`;
}
const ERRNO = {
    EPERM: [1, 'Operation not permitted'],
    ENOENT: [2, 'No such file or directory'],
    EIO: [5, 'Input/output error'],
    E2BIG: [7, 'Argument list too long'],
    ENOEXEC: [8, 'Exec format error'],
    EAGAIN: [11, 'Resource temporarily unavailable'],
    ENOMEM: [12, 'Cannot allocate memory'],
    EACCES: [13, 'Permission denied'],
    ENOTDIR: [20, 'Not a directory'],
    EISDIR: [21, 'Is a directory'],
    EINVAL: [22, 'Invalid argument'],
    ETXTBSY: [26, 'Text file busy'],
    ENAMETOOLONG: [36, 'File name too long'],
    ELOOP: [40, 'Too many levels of symbolic links'],
};
/** The message of the OSError that Python raises when `program` cannot be started. */
export function launchMessage(error, program) {
    const known = error ? ERRNO[error.code] : undefined;
    if (!known)
        return error?.message ?? 'unknown';
    return `[Errno ${known[0]}] ${known[1]}: ${repr(program)}`;
}
/** A completion as a command line: a JSON list of texts if it is one, else a line for the shell. */
export function argvCompletion(text) {
    const block = fencedText(text);
    try {
        const value = parseJson(block);
        if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === 'string'))
            return value;
    }
    catch {
        // no JSON: the shell's
    }
    return ['sh', '-c', block];
}
