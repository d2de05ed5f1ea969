import { describe, expect, it } from 'vitest';
import { mapOf } from '../../../src/shared/json/value.ts';
import { pyInt } from '../../../src/shared/python/int.ts';
import {
  ascii,
  divide,
  lengthOf,
  parseFloatText,
  repr,
  str,
  strip,
  surrogateFault,
  toFloat,
} from '../../../src/shared/python/text.ts';
import { pyDecode, pyDecodeText, wholeCharacters } from '../../../src/shared/python/utf8.ts';
import { layFiles, safePath } from '../../../src/shared/safe-path.ts';

describe("Python's text of a value", () => {
  it('quotes and escapes as repr does', () => {
    expect(repr(mapOf({ "it's": [true, null, 1n, 1, 'a\n\x1b\xa0é\u200b🐝\ud83d'] }))).toBe(
      `{"it's": [True, None, 1, 1.0, 'a\\n\\x1b\\xa0é\\u200b🐝\\ud83d']}`,
    );
    expect(repr(`'"\\`)).toBe(`'\\'"\\\\'`);
    expect(str('plain')).toBe('plain');
    expect(ascii('é🐝')).toBe("'\\xe9\\U0001f41d'");
  });

  it('strips its own idea of white space', () => {
    expect(strip('\x1c\u0085 x\u2028\u3000')).toBe('x');
    expect(strip('\ufeffx')).toBe('\ufeffx');
  });

  it('counts code points, and finds the first lone surrogate', () => {
    expect(lengthOf('🐝\ud83d')).toBe(2);
    expect(surrogateFault('🐝é')).toBeNull();
    expect(surrogateFault('🐝\udc80')).toBe(
      "'utf-8' codec can't encode character '\\udc80' in position 1: surrogates not allowed",
    );
  });
});

describe("Python's numbers from text", () => {
  it.each([
    [' +1_000\n', 1000n],
    ['\u0661\u0662', 12n],
    ['-0', 0n],
    [3.9, 3n],
    [-3.9, -3n],
    [true, 1n],
  ])('int(%j)', (given, value) => {
    expect(pyInt(given)).toEqual({ ok: true, value });
  });

  it.each(['', '1__0', '_1', '0x7', '5.0', '²', '1 2', '1\0'])('int(%j) raises', (text) => {
    expect(pyInt(text)).toMatchObject({ ok: false, error: expect.stringMatching(/^invalid literal/) });
  });

  it('reads floats', () => {
    expect(['.5', '5.', '1e5', '1_0.5', '\u0661.5', '-inf', 'Infinity'].map(parseFloatText)).toEqual([
      0.5,
      5,
      1e5,
      10.5,
      1.5,
      -Infinity,
      Infinity,
    ]);
    expect(parseFloatText('nan')).toBeNaN();
    expect(['1e', '0x1', '', '1._5', '.'].map(parseFloatText)).toEqual([null, null, null, null, null]);
    expect([toFloat(10n ** 400n), toFloat(true), toFloat(null)]).toEqual([null, 1, null]);
    expect([divide(1n, 3n), divide(-(10n ** 400n), 10n ** 399n), divide(1n, 0n)]).toEqual([1 / 3, -10, null]);
  });
});

describe("Python's text mode", () => {
  it.each<[number[], string]>([
    [[0x6f, 0xff], 'byte 0xff in position 1: invalid start byte'],
    [[0xe2, 0x82], 'bytes in position 0-1: unexpected end of data'],
    [[0xe9, 0x7d], 'byte 0xe9 in position 0: invalid continuation byte'],
    [[0xed, 0xa0, 0x80], 'byte 0xed in position 0: invalid continuation byte'],
    [[0xf0, 0x9f, 0x41], 'bytes in position 0-1: invalid continuation byte'],
  ])('names what cannot be decoded: %j', (bytes, reason) => {
    expect(pyDecode(Uint8Array.from(bytes))).toEqual({ ok: false, error: `'utf-8' codec can't decode ${reason}` });
  });

  it('folds line ends and keeps a mark at the start', () => {
    expect(pyDecodeText(Buffer.from('\ufeffa\r\nb\rc'))).toEqual({ ok: true, text: '\ufeffa\nb\nc' });
  });

  it('cuts before a character that is not whole', () => {
    expect(wholeCharacters(Buffer.from('é🐝').subarray(0, 5)).length).toBe(2);
    expect(wholeCharacters(Buffer.from('é')).length).toBe(2);
    expect(wholeCharacters(Buffer.alloc(0)).length).toBe(0);
  });
});

describe('a file key', () => {
  it('is kept inside its folder', () => {
    expect(['./a', 'd//b', 'x/../c', 'a\\b', '~', '..a'].map((key) => safePath(key))).toEqual(
      ['a', 'd/b', 'c', 'a\\b', '~', '..a'].map((path) => ({ ok: true, path })),
    );
    for (const key of ['', '.', 'a/..', '../x', 'a/../../a/x', '/etc/x', 'a\0']) expect(safePath(key).ok).toBe(false);
  });

  it('in the place of a folder is found before it is written', () => {
    expect(
      layFiles([
        ['a', ''],
        ['a/b', ''],
      ]),
    ).toMatchObject({ ok: false, kind: 'impossible' });
    expect(
      layFiles([
        ['a/b', ''],
        ['a', ''],
      ]),
    ).toMatchObject({ ok: false, kind: 'impossible' });
    expect(
      layFiles([
        ['a', '1'],
        ['./a', '2'],
      ]),
    ).toEqual({ ok: true, files: new Map([['a', Buffer.from('2')]]) });
  });
});
