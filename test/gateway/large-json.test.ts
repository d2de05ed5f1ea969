import { describe, expect, test } from 'vitest';
import { parseLarge } from '../../src/gateway/large-json.ts';
import { parseJson } from '../../src/shared/json/json.ts';

const filler = (n: number) => Array.from({ length: n }, (_, i) => `"item ${i} ${'x'.repeat(200)} \\" \\\\"`);
const large = (list: string, more = '') => `{"completions": [${list}], "n": 1.0${more}}`;

describe('a large body', () => {
  test('is the value that parseJson gives, numbers and order included', async () => {
    const odd = [
      '1',
      '1.0',
      '-0.0',
      '1e400',
      'NaN',
      'null',
      '[[], {}]',
      '{"a": [1, {"b": "]},"}]}',
      '"\\\\"',
      '"\\u0041,["',
      '123456789012345678901234567890',
    ];
    const text = large(
      [...filler(3_000), ...odd, ...filler(100)].join(' ,\n '),
      ', "m": {"k": [1,2]}, "e": [ ], "s": "}"',
    );
    expect(await parseLarge(text)).toEqual(parseJson(text));
  });

  test.each([
    ['an empty item', large(`${filler(3_000).join()},,1`)],
    ['a comma at the end of a list', large(`${filler(3_000).join()},`)],
    ['a comma at the end', `{"a": [${filler(3_000).join()}],}`],
    ['a key twice', large(filler(3_000).join(), ', "n": 2')],
    ['a key that is no text', `{1: [${filler(3_000).join()}]}`],
    ['no end', large(filler(3_000).join()).slice(0, -1)],
    ['a text without end', `{"a": ["${'x'.repeat(400_000)}]}`],
    ['more behind it', `${large(filler(3_000).join())} x`],
    ['brackets that cross', `{"a": [${filler(3_000).join()}}]`],
    ['nesting without end', `{"a": ${'['.repeat(400_000)}`],
  ])('with %s is refused in parseJson’s words', async (_, text) => {
    const refusal = (() => {
      try {
        parseJson(text, { duplicates: 'top' });
      } catch (error) {
        return (error as Error).message;
      }
    })();
    expect(refusal).toBeDefined();
    await expect(parseLarge(text)).rejects.toThrow(refusal as string);
  });

  test('leaves the event loop to others while it is read', async () => {
    const text = large(filler(60_000).join());
    let turns = 0;
    const count = setInterval(() => turns++, 1);
    await parseLarge(text);
    clearInterval(count);
    expect(turns).toBeGreaterThan(20);
  });
});
