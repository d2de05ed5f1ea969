// Replay against the reference's tampered files: whatever the library finds we find, with its lines; what it lets pass
// and we refuse is listed by kind of tampering; and what nothing can find in a lone file is found where more is known.

import { describe, expect, it } from 'vitest';
import { FarmError } from '../../../src/shared/errors.ts';
import { mapOf, type Value, type ValueMap } from '../../../src/shared/json/value.ts';
import { parseTrajectory } from '../../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../../src/workers/rollout/environments/registry.ts';
import { type ReplayOptions, type ReplayReport, replayTrajectory } from '../../../src/workers/rollout/replay.ts';
import { readVectors, type VectorCase } from '../../support/vector-file.ts';
import { build, playActions, testContext } from './test-context.ts';

/** Classes of tampering that the library's replay accepts in at least one base, and ours refuses wherever they show. */
const STRICTER = [
  'reward-last-int',
  'reward-last-true',
  'total-within-tolerance',
  'done-last-one',
  'info-bool-to-int',
  'info-int-to-float',
  'final-removed',
  'config-int-to-float',
  'seed-float',
  'seed-true',
  'seed-text',
  'last-missing-no-final',
  'all-removed-final-is-initial',
  'observations-float-to-int',
  'observations-int-to-float',
  'everything-float-to-int',
  'duplicate-total-key-last-wins',
  'duplicate-trajectory-key',
  'duplicate-seed-key',
  'extra-envelope-key',
  'extra-trajectory-key',
  'version-float',
];

async function replayText(text: string, options: ReplayOptions = {}): Promise<ReplayReport | 'refused'> {
  try {
    return await replayTrajectory(
      parseTrajectory(text),
      (name, config) => makeEnvironment(name, config, testContext()),
      options,
    );
  } catch (error) {
    if (error instanceof FarmError && error.exit === 2) return 'refused';
    throw error;
  }
}

function linesOf(c: VectorCase): string[] {
  const stdout = ((c.out.get('cli_replay') as ValueMap).get('stdout') ?? '') as string;
  return stdout.split('\n').flatMap((line) => (line.startsWith('  - ') ? [line.slice(4)] : []));
}

const cases = readVectors('cr-tamper');

describe('a tampered file', () => {
  it.each(cases.map((c) => [c.id, c] as const))('%s', async (_, c) => {
    const report = await replayText(c.in.get('file_text') as string);
    const exit = (c.out.get('cli_replay') as ValueMap).get('exit');
    const kind = c.in.get('class') as string;
    if (report === 'refused') {
      expect(exit !== 0n || STRICTER.includes(kind)).toBe(true);
    } else if (exit === 0n) {
      if (!report.ok) expect(STRICTER).toContain(kind);
    } else if (kind === 'version-1-stripped') {
      // The library holds a config against it that the format did not record.
      expect(report.unrecorded).toContain('env_config');
    } else {
      expect(report.ok).toBe(false);
      expect(report.mismatches).toEqual(expect.arrayContaining(linesOf(c)));
    }
  });

  it('is found by what is known from elsewhere where the file alone is consistent', async () => {
    const consistent = ['seed-negated', 'seed-plus-one', 'seed-big'];
    const found = await Promise.all(
      cases
        .filter((c) => consistent.includes(c.in.get('class') as string))
        .map((c) =>
          replayText(c.in.get('file_text') as string, {
            expected: { seed: (c.in.get('base_env') as ValueMap).get('seed') as bigint },
          }),
        ),
    );
    expect(found.length).toBeGreaterThan(4);
    for (const report of found) expect(report).toMatchObject({ ok: false });
  });
});

describe('replay', () => {
  const actions: Value[] = [50n, 'seven', 75n];

  it('reproduces an episode with an action that was a miss for its type', async () => {
    const episode = await playActions(build('guess', {}), actions);
    if (episode.status !== 'completed') throw new Error(episode.status);
    expect(await replayText(episode.bytes.toString())).toMatchObject({ ok: true, steps: 3 });
  });

  it('finds a truncated episode by the number of its steps', async () => {
    const episode = await playActions(build('guess', {}), actions.slice(0, 2));
    if (episode.status !== 'completed') throw new Error(episode.status);
    const report = await replayText(episode.bytes.toString(), { expected: { steps: 3 } });
    expect(report).toMatchObject({ ok: false, mismatches: ['steps: expected 3 != recorded 2'] });
  });

  it('names an unknown environment, and a config that cannot be built, as unusable input', async () => {
    const base = {
      version: 3n,
      seed: 1n,
      initialObservation: null,
      transitions: [],
      totalReward: 0,
      finalObservation: null,
    };
    const make = (): never => {
      throw new Error('not reached');
    };
    await expect(replayTrajectory({ ...base, envId: 'riddle', envConfig: new Map() }, make)).rejects.toMatchObject({
      exit: 2,
    });
    const envConfig = mapOf({ low: 5n, high: 1n });
    await expect(replayTrajectory({ ...base, envId: 'guess', envConfig }, make)).rejects.toThrow(/config\.low/);
    const nothing = replayTrajectory({ ...base, envId: 'guess', envConfig: null }, make);
    await expect(nothing).rejects.toMatchObject({ exit: 2 });
  });

  it('names a schema that builds nothing as unusable input', async () => {
    const config = mapOf({ schema_sql: 'CREAT', seed_sql: '', task: 't', expected_rows: [] });
    const step = { observation: null, action: 'SELECT 1', reward: -0.1, done: false, info: new Map(), digest: '' };
    const trajectory = {
      version: 3n,
      envId: 'sql-task',
      seed: 1n,
      initialObservation: null,
      envConfig: config,
      transitions: [step],
      totalReward: -0.1,
      finalObservation: null,
    };
    const replayed = replayTrajectory(trajectory, (name, given) => makeEnvironment(name, given, testContext()));
    await expect(replayed).rejects.toMatchObject({ exit: 2, message: expect.stringMatching(/syntax error/) });
  });
});
