import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseJson } from '../../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../../src/shared/json/value.ts';
import { formatTemplate } from '../../../src/shared/python/format.ts';
import { FormatFault } from '../../../src/shared/python/format-spec.ts';

function format(template: string, value: Value): Value[] {
  try {
    const values = new Map<string, Value>([
      ['v', value],
      ['w', 12n],
      ['p', 3n],
    ]);
    return ['ok', formatTemplate(template, values)];
  } catch (error) {
    if (!(error instanceof FormatFault)) throw error;
    return [error.kind];
  }
}

// Random templates and values with what CPython 3.11 makes of them.
test('templates are filled as Python fills them, and fail where it fails', () => {
  const rows = readFileSync(new URL('../../fixtures/py-format-cases.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const differ = rows.filter((row) => {
    const one = parseJson(row) as ValueMap;
    const ours = format(one.get('template') as string, one.get('value') as Value);
    return JSON.stringify(ours) !== JSON.stringify(one.get('result'));
  });
  expect(differ).toEqual([]);
});

test('a width that a completion chose makes no huge text', () => {
  expect(format('{v:{v}}', 10n ** 9n)).toEqual(['leaves']);
});

test('digits of any script are a width', () => {
  expect(format('{v:\u0665}', 1n)).toEqual(['ok', '    1']);
});

test('of a value and a spec that are both at fault, the value counts', () => {
  expect(format('{v.nope:{nope}}', 1n)).toEqual(['leaves']);
  expect(format('{nope:{v.nope}}', 1n)).toEqual(['value']);
});
