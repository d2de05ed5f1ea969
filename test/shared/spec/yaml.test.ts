import { describe, expect, it } from 'vitest';
import type { Value } from '../../../src/shared/json/value.ts';
import { readYaml, YamlError } from '../../../src/shared/spec/yaml.ts';

const read = (text: string): Value => readYaml(text, 'x.yaml').value;
const scalar = (text: string): Value => (read(`- ${text}\n`) as Value[])[0] as Value;
const map = (...entries: [string, Value][]): Value => new Map(entries);

function fault(text: string): { line: number; message: string } {
  try {
    readYaml(text, 'x.yaml');
  } catch (error) {
    if (error instanceof YamlError) return { line: error.line, message: error.message };
    throw error;
  }
  throw new Error('accepted');
}

describe('a plain scalar means what PyYAML takes it for', () => {
  // Each value as PyYAML 6.0 reads it.
  const cases: [string, Value][] = [
    ['yes', true],
    ['Off', false],
    ['no', false],
    ['y', 'y'],
    ['tRue', 'tRue'],
    ['~', null],
    ['', null],
    ['nUll', 'nUll'],
    ['017', 15n],
    ['-017', -15n],
    ['08', '08'],
    ['0o17', '0o17'],
    ['0x1F', 31n],
    ['-0x1f', -31n],
    ['0b11', 3n],
    ['1_000', 1000n],
    ['+7', 7n],
    ['-0', 0n],
    ['1:30', 90n],
    ['-1:30', -90n],
    ['1:60', '1:60'],
    ['01:30', '01:30'],
    ['1:30.5', 90.5],
    ['190:20:30.15', 685230.15],
    ['123456789012345678901234567890', 123456789012345678901234567890n],
    ['1e5', '1e5'],
    ['1e-6', '1e-6'],
    ['1.5e3', '1.5e3'],
    ['1.0e-6', 1e-6],
    ['1.E+3', 1000],
    ['1.', 1],
    ['.5', 0.5],
    ['-.5', '-.5'],
    ['1.0e+400', Number.POSITIVE_INFINITY],
    ['.inf', Number.POSITIVE_INFINITY],
    ['-.INF', Number.NEGATIVE_INFINITY],
    ['.iNf', '.iNf'],
    ['.NaN', Number.NaN],
    ['NaN', 'NaN'],
    ["'1'", '1'],
    ['"no"', 'no'],
    ['!!str 12', '12'],
    ["!!int '12'", 12n],
    ['!!float 3', 3],
    // PyYAML makes a date of it, which JSON cannot carry
    ['2031-02-01', '2031-02-01'],
  ];
  it.each(cases)('%s', (text, value) => expect(scalar(text)).toStrictEqual(value));

  it('keeps the sign of a negative zero', () => expect(Object.is(scalar('-0.0'), -0)).toBe(true));

  it.each([
    ['decimal', '9'.repeat(4_301)],
    ['hexadecimal', `0x${'f'.repeat(4_000)}`],
  ])('and is text where it is an integer that no JSON reader takes back: %s', (_, text) => {
    expect(scalar(text)).toBe(text);
    expect(scalar('9'.repeat(4_300))).toBe(10n ** 4_300n - 1n);
  });
});

describe('a document', () => {
  it('keeps the order of keys, and makes text of keys that are not', () => {
    expect([...(read('10: a\n2: b\ntrue: c\n~: d\n2.5: e\n') as Map<string, Value>).keys()]).toEqual([
      '10',
      '2',
      'true',
      'null',
      '2.5',
    ]);
  });

  it('merges: own keys win, then the first of a list', () => {
    const text = 'a: &x {b: 1, q: 4}\nz: &y {b: 2, r: 9}\nc: {d: 2, <<: [*x, *y], q: 5}\n';
    expect((read(text) as Map<string, Value>).get('c')).toEqual(map(['b', 1n], ['r', 9n], ['q', 5n], ['d', 2n]));
  });

  it('may begin with a byte order mark, and end lines with CR LF', () => {
    expect(read('\ufeffa: 1\r\nb: x\r\n')).toEqual(map(['a', 1n], ['b', 'x']));
  });

  it('reads block texts', () => {
    expect(read('a: |\n  x\n   y\nb: >-\n  x\n  y\n')).toEqual(map(['a', 'x\n y\n'], ['b', 'x y']));
  });

  it('that is JSON has the numbers of JSON', () => {
    expect(read('{"a": 1e-6, "b": 1, "c": 1.0, "d": "\\ud83d\\ude00"}')).toEqual(
      map(['a', 1e-6], ['b', 1n], ['c', 1], ['d', '😀']),
    );
  });

  it('that only looks like JSON is YAML', () => {
    expect(read('{"a": .inf, b: 017}')).toEqual(map(['a', Number.POSITIVE_INFINITY], ['b', 15n]));
    expect(() => readYaml('{a: 1}', 'x.json')).toThrow(/double quotes/);
  });
});

describe('refused, with its line', () => {
  it.each([
    ['a key given twice', 'a: 1\nb:\n  c: 1\n  c: 2\n', 4, /"c" is given twice \(first at line 3\)/],
    ['a key given twice, once as a number', '1: a\n"1": b\n', 2, /given twice/],
    ['a key given twice in JSON', '{"a": 1,\n "a": 2}', 2, /"a" is given twice/],
    ['two documents', 'a: 1\n---\nb: 2\n', 2, /documents/i],
    ['a tab as indentation', 'a:\n\tb: 1\n', 2, /tab/i],
    ['a tab after a colon', 'a: 1\nb:\t2\n', 2, /tab/],
    ['a tab at the end of a value', 'a: 1\nb: 2\t\n', 2, /tab/],
    ['a line that is a tab', 'a: 1\n\t\n', 2, /tab/],
    ['the merge mark as a value', 'a: 1\nb: <<\n', 2, /quotes/],
    ['the value mark', 'a: 1\nb: [=]\n', 2, /quotes/],
    ['a tag of Python', 'a: 1\nb: !!python/object:os.system {}\n', 2, /tag .* not allowed/],
    ['an unknown tag', 'a: !foo 1\n', 1, /tag !foo is not allowed/],
    ['an alias to nothing', 'a: 1\nb: *c\n', 2, /\*c has no anchor/],
    ['an alias to itself', 'a: &r [*r]\n', 1, /inside its own anchor/],
    ['a list as a key', '? [1]\n: a\n', 1, /key must be a single value/],
    ['an unfinished list', 'a: [1, 2\nb: 3\n', 2, /./],
  ])('%s', (_, text, line, message) => {
    const found = fault(text);
    expect(found.line).toBe(line);
    expect(found.message).toMatch(message);
  });

  it('aliases that multiply', () => {
    const laughs = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 12; i++) laughs.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(9)}*a${i - 1}]`);
    expect(fault(laughs.join('\n')).message).toMatch(/aliases stand for more than 64 MB/);
  });

  it('nesting without end, in YAML and in JSON', () => {
    expect(fault(`a: ${'['.repeat(2000)}${']'.repeat(2000)}`).message).toMatch(/nested/);
    expect(fault('['.repeat(200_000)).message).toMatch(/nested/);
  });
});

it('a tab is text inside quotes, block texts and comments', () => {
  const text = 'a: "x\ty" # c\td\nb: |\n  p\tq\n  \tr\nc: \'s\tt\'\n';
  expect(readYaml(text, 'a.yaml').value).toEqual(
    new Map([
      ['a', 'x\ty'],
      ['b', 'p\tq\n\tr\n'],
      ['c', 's\tt'],
    ]),
  );
});

describe('the place of a field', () => {
  const yaml = 'a: 1\nb:\n  - x: 1\n  - y: 2\n    z: 3\n';
  const json = '{"a": 1,\n "b": [{"x": "]\\"}"},\n  {"y": 2,\n   "z": 3}]}';
  it.each([
    [yaml, ['b', 1, 'z'], { line: 5, column: 5 }],
    [yaml, ['b', 1, 'none'], { line: 4, column: 5 }],
    [yaml, [], { line: 1, column: 1 }],
    [json, ['b', 1, 'z'], { line: 4, column: 4 }],
    [json, ['b', 1], { line: 3, column: 3 }],
    [json, ['b', 5], { line: 2, column: 2 }],
    [json, ['none', 0], { line: 1, column: 1 }],
  ])('%j %j', (text, path, spot) => {
    expect(readYaml(text, 'x.yaml').locate(path)).toEqual(spot);
  });
});
