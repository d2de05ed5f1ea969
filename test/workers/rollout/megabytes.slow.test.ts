// Actions of 50 MB that escape to several times their size: the record is longer than one string could be.

import { constants } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { mapOf } from '../../../src/shared/json/value.ts';
import { parseTrajectory } from '../../../src/shared/trajectory.ts';
import { build, playActions } from './test-context.ts';

describe('an action of 50 MB', () => {
  it('is recorded, also where two of them exceed a string', async () => {
    const big = '\u0001'.repeat(50 * 1024 * 1024);
    const episode = await playActions(build('guess', { max_guesses: 5 }), [big, big]);
    if (episode.status !== 'completed') throw new Error(episode.status);
    expect(episode.totalReward).toBe(-0.1);
    expect(episode.bytes.length).toBeGreaterThan(constants.MAX_STRING_LENGTH);
  });

  it('in a file of a code task is a miss that leaves the files as they were', async () => {
    const environment = build('code-task', { files: { 'a.py': 'x' }, task: 't', check: { command: ['true'] } });
    const episode = await playActions(environment, [mapOf({ 'a.py': 'é'.repeat(25 * 1024 * 1024) }), new Map()]);
    if (episode.status !== 'completed') throw new Error(episode.status);
    expect(episode).toMatchObject({ steps: 2, totalReward: 0.9 });
    expect(parseTrajectory(episode.bytes).finalObservation).toEqual(mapOf({ files: mapOf({ 'a.py': 'x' }) }));
  });
});
