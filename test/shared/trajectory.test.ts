// Reading the reference's files of every version, and refusing what is none, with one line each.

import { describe, expect, it } from 'vitest';
import { FarmError } from '../../src/shared/errors.ts';
import { mapOf, type ValueMap } from '../../src/shared/json/value.ts';
import {
  canonicalText,
  fingerprint,
  integrityMismatches,
  parseTrajectory,
  serializeTrajectory,
  type Trajectory,
} from '../../src/shared/trajectory.ts';
import { readVectors, type VectorCase } from '../support/vector-file.ts';

const cases = readVectors('cr-formats').filter((c) => typeof c.in.get('file_text') === 'string');
/** The library reads these and leaves out, or trips later over, what is wrong with them. */
const REFUSED_HERE = [
  'format.text-utf8-not-escaped',
  'format.struct-extra-envelope',
  'format.struct-extra-trajectory',
  'format.struct-reward-null',
  'format.struct-total-null',
  'format.struct-total-text',
];
/** Totals that are only nearly right. */
const NEARLY = ['format.show-tolerance-in-9'];

function shownFaults(c: VectorCase): string[] {
  const stdout = (c.out.get('cli_show') as ValueMap).get('stdout') as string;
  return stdout.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []));
}

describe('a saved trajectory', () => {
  const readable = cases.filter((c) => c.out.has('loaded') && !REFUSED_HERE.includes(c.id));

  it.each(readable.map((c) => [c.id, c] as const))('%s is read', (id, c) => {
    const trajectory = parseTrajectory(c.in.get('file_text') as string);
    expect(canonicalText(trajectory)).toBe((c.out.get('loaded') as ValueMap).get('to_json'));
    if (NEARLY.includes(id)) expect(integrityMismatches(trajectory)).toHaveLength(1);
    else expect(integrityMismatches(trajectory)).toEqual(shownFaults(c));
  });

  const refused = cases.filter((c) => c.out.has('raises') || REFUSED_HERE.includes(c.id));

  it.each(refused.map((c) => [c.id, c] as const))('%s is refused in one line', (_, c) => {
    const read = () => parseTrajectory(c.in.get('file_text') as string, 'episode.json');
    expect(read).toThrow(FarmError);
    expect(read).toThrow(/^episode\.json: [^\n]+$/);
  });

  it('that is not UTF-8 is refused', () => {
    expect(() => parseTrajectory(Buffer.from([0x7b, 0xe9, 0x7d]))).toThrow(
      /not UTF-8: 'utf-8' codec can't decode byte 0xe9/,
    );
  });

  it('with a key given twice is refused', () => {
    expect(() => parseTrajectory('{"version": 3, "version": 3, "trajectory": {}}')).toThrow(/given twice/);
  });
});

describe('serializing', () => {
  const trajectory: Trajectory = {
    version: 3n,
    envId: 'guess',
    seed: 10n ** 30n,
    initialObservation: mapOf({ '10': 1n, '9': [1, 1e16, -0, []], é: '\ud83d' }),
    envConfig: new Map(),
    transitions: [],
    totalReward: 0,
    finalObservation: null,
  };

  it('is read back as it was, to the byte', () => {
    const bytes = serializeTrajectory(trajectory);
    const again = parseTrajectory(bytes);
    expect(again).toEqual(trajectory);
    expect(serializeTrajectory(again).equals(bytes)).toBe(true);
    expect(fingerprint(again)).toBe(fingerprint(trajectory));
  });
});
