import { describe, expect, it } from 'vitest';
import { dumpText } from '../../../src/shared/json/text.ts';

describe('a JSON text', () => {
  const pieces = ['plain ~', '"\\/', '\n\r\t\b\f', '\u0000\u001f\u007f\u0080\u00ff', 'é\u2028\ufeff', '🐝', '\ud83d'];
  const escaped =
    'plain ~\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\\u007f\\u0080\\u00ff\\u00e9\\u2028\\ufeff\\ud83d\\udc1d\\ud83d';

  it('is ASCII with the escapes of json.dumps', () => {
    expect(dumpText(pieces.join(''))).toBe(`"${escaped}"`);
  });

  it('is the same when it is long', () => {
    expect(dumpText(pieces.join('').repeat(1_000))).toBe(`"${escaped.repeat(1_000)}"`);
    expect(dumpText('x'.repeat(10_000))).toBe(`"${'x'.repeat(10_000)}"`);
  });
});
