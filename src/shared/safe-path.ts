// Where a file key leads, judged by its text alone in a folder without links: a relative path inside the folder, or
// a refusal in crucible's words. Windows separators, `~` and `%2e` are plain names, as on every POSIX system.

import { repr, surrogateFault } from './python/text.ts';

export type SafePath = { ok: true; path: string } | { ok: false; error: string };

const NAME_BYTES = 255;
const PATH_BYTES = 3_500;

export function safePath(key: string): SafePath {
  const fault = surrogateFault(key) ?? (key.includes('\0') ? 'embedded null byte' : null);
  if (fault) return { ok: false, error: fault };
  const kept: string[] = [];
  let outside = key.startsWith('/');
  for (const part of key.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.pop() === undefined) outside = true;
  }
  if (outside || kept.length === 0) return { ok: false, error: `unsafe file path escapes the sandbox: ${repr(key)}` };
  return { ok: true, path: kept.join('/') };
}

export type Laid =
  | { ok: true; files: Map<string, Buffer> }
  /** `refused`: unsafe or not UTF-8 (Python's ValueError). `impossible`: no file system can hold it (its OSError). `type`: content that is no text. */
  | { ok: false; kind: 'refused' | 'impossible' | 'type'; escape: boolean; error: string };

/** Files by their normalised path as bytes, in order, or the first fault that writing them one after another would meet. */
export function layFiles(files: Iterable<readonly [string, unknown]>): Laid {
  const laid = new Map<string, Buffer>();
  const folders = new Set<string>();
  for (const [key, content] of files) {
    const safe = safePath(key);
    if (!safe.ok) return { ok: false, kind: 'refused', escape: safe.error.startsWith('unsafe'), error: safe.error };
    const impossible = impossiblePath(safe.path, laid, folders);
    if (impossible) return { ok: false, kind: 'impossible', escape: false, error: impossible };
    if (typeof content !== 'string') {
      return { ok: false, kind: 'type', escape: false, error: `data must be str, not ${nameOf(content)}` };
    }
    const fault = surrogateFault(content);
    if (fault) return { ok: false, kind: 'refused', escape: false, error: fault };
    laid.set(safe.path, Buffer.from(content, 'utf8'));
  }
  return { ok: true, files: laid };
}

function impossiblePath(path: string, laid: ReadonlyMap<string, Buffer>, folders: Set<string>): string | null {
  const parts = path.split('/');
  if (parts.some((part) => Buffer.byteLength(part) > NAME_BYTES) || Buffer.byteLength(path) > PATH_BYTES) {
    return `[Errno 36] File name too long: ${repr(path)}`;
  }
  for (let i = 1; i < parts.length; i++) {
    const folder = parts.slice(0, i).join('/');
    if (laid.has(folder)) return `[Errno 17] File exists: ${repr(folder)}`;
    folders.add(folder);
  }
  return folders.has(path) ? `[Errno 21] Is a directory: ${repr(path)}` : null;
}

function nameOf(content: unknown): string {
  if (content === null || content === undefined) return 'NoneType';
  if (typeof content === 'boolean') return 'bool';
  if (typeof content === 'bigint') return 'int';
  if (typeof content === 'number') return 'float';
  return Array.isArray(content) ? 'list' : 'dict';
}
