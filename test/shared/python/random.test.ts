import { describe, expect, it } from 'vitest';
import type { Value } from '../../../src/shared/json/value.ts';
import { PyRandom } from '../../../src/shared/python/random.ts';
import { readVectors } from '../../support/vector-file.ts';

const cases = readVectors('cr-random').filter(
  (c) => typeof c.in.get('low') === 'bigint' && typeof c.in.get('high') === 'bigint' && !c.out.has('raises'),
);

describe("CPython's random.Random(seed).randint", () => {
  it('is asked for nearly every reference case', () => {
    expect(cases.length).toBeGreaterThan(160);
  });

  it.each(cases.map((c) => [c.id, c] as const))('%s', (_, c) => {
    const random = new PyRandom(c.in.get('seed') as Value);
    const draw = (): bigint => random.randint(c.in.get('low') as bigint, c.in.get('high') as bigint);
    const values = c.out.get('values');
    if (Array.isArray(values)) expect(values.map(draw)).toEqual(values);
    else expect(draw()).toBe(c.out.get('value'));
  });

  it('refuses an empty range', () => {
    expect(() => new PyRandom(1n).randint(2n, 1n)).toThrow(/low <= high/);
  });
});
