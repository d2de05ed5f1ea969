// Where a file key leads, judged by its text alone in a folder without links: a relative path inside the folder, or
// a refusal in crucible's words. Windows separators, `~` and `%2e` are plain names, as on every POSIX system.
import { repr, surrogateFault } from './python/text.js';
const NAME_BYTES = 255;
const PATH_BYTES = 3_500;
export function safePath(key) {
    const fault = surrogateFault(key) ?? (key.includes('\0') ? 'embedded null byte' : null);
    if (fault)
        return { ok: false, error: fault };
    const kept = [];
    let outside = key.startsWith('/');
    for (const part of key.split('/')) {
        if (part === '' || part === '.')
            continue;
        if (part !== '..')
            kept.push(part);
        else if (kept.pop() === undefined)
            outside = true;
    }
    if (outside || kept.length === 0)
        return { ok: false, error: `unsafe file path escapes the sandbox: ${repr(key)}` };
    return { ok: true, path: kept.join('/') };
}
/** Files by their normalised path as bytes, in order, or the first fault that writing them one after another would meet. */
export function layFiles(files) {
    const laid = new Map();
    const folders = new Set();
    for (const [key, content] of files) {
        const safe = safePath(key);
        if (!safe.ok)
            return { ok: false, kind: 'refused', escape: safe.error.startsWith('unsafe'), error: safe.error };
        const impossible = impossiblePath(safe.path, laid, folders);
        if (impossible)
            return { ok: false, kind: 'impossible', escape: false, error: impossible };
        if (typeof content !== 'string') {
            return { ok: false, kind: 'type', escape: false, error: `data must be str, not ${nameOf(content)}` };
        }
        const fault = surrogateFault(content);
        if (fault)
            return { ok: false, kind: 'refused', escape: false, error: fault };
        laid.set(safe.path, Buffer.from(content, 'utf8'));
    }
    return { ok: true, files: laid };
}
function impossiblePath(path, laid, folders) {
    const parts = path.split('/');
    if (parts.some((part) => Buffer.byteLength(part) > NAME_BYTES) || Buffer.byteLength(path) > PATH_BYTES) {
        return `[Errno 36] File name too long: ${repr(path)}`;
    }
    for (let i = 1; i < parts.length; i++) {
        const folder = parts.slice(0, i).join('/');
        if (laid.has(folder))
            return `[Errno 17] File exists: ${repr(folder)}`;
        folders.add(folder);
    }
    return folders.has(path) ? `[Errno 21] Is a directory: ${repr(path)}` : null;
}
function nameOf(content) {
    if (content === null || content === undefined)
        return 'NoneType';
    if (typeof content === 'boolean')
        return 'bool';
    if (typeof content === 'bigint')
        return 'int';
    if (typeof content === 'number')
        return 'float';
    return Array.isArray(content) ? 'list' : 'dict';
}
