// Reads the reference vectors (computed by the Python libraries): lossless numbers, and the tags for what JSON
// cannot carry. Tags are expanded in inputs and outputs; `$long` stays a tag and is compared by its hash.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseJson } from '../../src/shared/json/json.ts';
import { isMap, sameValue, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { lengthOf, repr } from '../../src/shared/python/text.ts';

export interface VectorCase {
  id: string;
  kind: string;
  in: ValueMap;
  out: ValueMap;
}

export interface VectorFile {
  name: string;
  cases: VectorCase[];
}

/** Throws where the file is no vector file. A file without cases of its own has none. */
export function readVectorFile(path: string | URL): VectorFile {
  const file = parseJson(readFileSync(path, 'utf8'));
  if (!isMap(file)) throw new Error(`${path}: not a file of reference cases`);
  const cases = (file.get('cases') ?? []) as ValueMap[];
  const name = String(file.get('name') ?? '');
  const tuples: Tuples = name === 'at-trl' ? 'list' : 'text';
  return {
    name,
    cases: cases
      .filter((one) => one.has('in') && one.has('out'))
      .map((one) => ({
        id: one.get('id') as string,
        kind: one.get('kind') as string,
        in: expand(one.get('in') as Value, tuples) as ValueMap,
        out: expand(one.get('out') as Value, tuples) as ValueMap,
      })),
  };
}

/** A tuple's items matter where it is a column; elsewhere only its `str`. */
type Tuples = 'list' | 'text';

function expand(value: Value, tuples: Tuples): Value {
  if (Array.isArray(value)) return value.map((x) => expand(x, tuples));
  if (!isMap(value)) return value;
  if (value.size === 1) {
    const float = value.get('$float');
    if (typeof float === 'string')
      return float === 'nan' ? Number.NaN : float === 'inf' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
    // `str(x)` of what only Python has, which is all that the cases ask of it
    const date = value.get('$date') ?? value.get('$datetime');
    if (typeof date === 'string') return date.replace('T', ' ');
    const tuple = value.get('$tuple');
    if (Array.isArray(tuple)) {
      const items = tuple.map((x) => expand(x, tuples));
      if (tuples === 'list') return items;
      return items.length === 1 ? `(${repr(items[0] as Value)},)` : `(${items.map(repr).join(', ')})`;
    }
    const bytes = value.get('$bytes');
    if (typeof bytes === 'string')
      return `b'${Buffer.from(bytes, 'hex')
        .toString('latin1')
        .replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)}'`;
    const repeat = value.get('$repeat');
    if (Array.isArray(repeat))
      return (repeat as [string, bigint][]).map(([piece, times]) => piece.repeat(Number(times))).join('');
  }
  return new Map([...value].map(([key, x]) => [key, expand(x, tuples)]));
}

/** Equal in type, value and the order of keys; a `$long` text by its hash and length. */
export function sameAsReference(ours: Value, reference: Value): boolean {
  if (isMap(reference)) {
    const long = reference.get('$long');
    if (isMap(long))
      return (
        typeof ours === 'string' &&
        createHash('sha256').update(ours).digest('hex') === long.get('sha256_utf8') &&
        BigInt(lengthOf(ours)) === long.get('code_points')
      );
    if (!isMap(ours) || ours.size !== reference.size) return false;
    const keys = [...reference.keys()];
    return [...ours].every(([key, x], i) => key === keys[i] && sameAsReference(x, reference.get(key) as Value));
  }
  if (Array.isArray(reference))
    return (
      Array.isArray(ours) &&
      ours.length === reference.length &&
      ours.every((x, i) => sameAsReference(x, reference[i] as Value))
    );
  return sameValue(ours, reference);
}
