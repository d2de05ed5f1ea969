import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeFolder } from '../../src/shared/make-folder.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'farm-folder-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

describe('a folder is made', () => {
  it('with those above it, in the mode that is asked for, also where it is there', () => {
    for (let i = 0; i < 2; i++) makeFolder(path.join(dir, 'a/b/c'), 0o700);
    for (const made of ['a', 'a/b', 'a/b/c']) expect(statSync(path.join(dir, made)).mode & 0o777).toBe(0o700);
  });

  it('through a link to a folder', () => {
    mkdirSync(path.join(dir, 'real'));
    symlinkSync(path.join(dir, 'real'), path.join(dir, 'link'));
    makeFolder(path.join(dir, 'link/x'));
    expect(existsSync(path.join(dir, 'real/x'))).toBe(true);
  });

  it('never where a file stands in its place or above it', () => {
    writeFileSync(path.join(dir, 'file'), 'x');
    expect(() => makeFolder(path.join(dir, 'file'))).toThrow(/EEXIST/);
    expect(() => makeFolder(path.join(dir, 'file/x/y'))).toThrow(/ENOTDIR/);
  });

  it.skipIf(process.platform !== 'linux')('never below /proc, which says so at once', () => {
    expect(() => makeFolder('/proc/farm-test/x')).toThrow(/ENOENT/);
  });
});
