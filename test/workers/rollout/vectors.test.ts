// The reference episodes of the Python library, played by our environments: the same file byte for byte, the same
// digests and fingerprint, and a clean replay. Where we differ, the case stands below with its reason.

import { describe, expect, it } from 'vitest';
import { isMap, type ValueMap } from '../../../src/shared/json/value.ts';
import { canonicalText, fingerprint, parseTrajectory } from '../../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../../src/workers/rollout/environments/registry.ts';
import { replayTrajectory } from '../../../src/workers/rollout/replay.ts';
import { playCase, printsEnvironment, unnamed } from '../../../tools/vectors/play-episode.ts';
import { readVectors } from '../../support/vector-file.ts';
import { testContext } from './test-context.ts';

/** The library raises in the middle of the episode; we refuse the config before anything starts. */
const REFUSED_EARLIER: ReadonlyMap<string, string> = new Map([
  ['traj.command.content-number', 'a file whose content is a number'],
  ['traj.http-task.response-not-mapping', 'a recorded response that is text'],
  ['traj.http-task.response-null', 'a recorded response that is null'],
  ['traj.terminal.goal-raises', 'a goal that raises is code, ours are data'],
  ['traj.terminal.file-escape', 'a file outside the work folder'],
]);

/** These two are registered here and carry their check or goal as data; there they are nameless and have no config. */
const NAMED_HERE = ['code-task', 'terminal'];

const cases = readVectors('cr-trajectories').map((c) => [c.id, c] as const);
const played = cases.filter(([, c]) => !c.out.has('raises') && !printsEnvironment(c));
const raising = cases.filter(([, c]) => c.out.has('raises'));

describe('an episode that the library records', () => {
  it.each(played)('%s', async (id, c) => {
    const episode = await playCase(c, testContext());
    if (episode.status !== 'completed') throw new Error(`${episode.status}`);
    const reference = c.out.get('file_text') as string;
    expect(episode.steps).toBe(Number(c.out.get('steps')));
    expect(episode.totalReward).toBe(c.out.get('total_reward'));
    expect(episode.trajectory.transitions.map((t) => t.digest)).toEqual(c.out.get('digests'));
    if (NAMED_HERE.includes(c.in.get('env') as string)) {
      expect(unnamed(episode.bytes)).toBe(unnamed(reference));
    } else {
      expect(episode.bytes.toString()).toBe(reference);
      expect(canonicalText(episode.trajectory)).toBe(c.out.get('to_json'));
      expect(fingerprint(episode.trajectory)).toBe(c.out.get('fingerprint'));
    }
    // Waiting for a timeout once is enough.
    if (id.includes('timeout')) return;
    const report = await replayTrajectory(parseTrajectory(episode.bytes), (name, config) =>
      makeEnvironment(name, config, testContext()),
    );
    expect(report).toEqual({ ok: true, steps: episode.steps, mismatches: [], unrecorded: [] });
  });
});

describe('an episode on which the library raises', () => {
  it.each(raising)('%s', async (id, c) => {
    const raised = c.out.get('raises') as ValueMap;
    const episode = await playCase(c, testContext());
    const where = raised.get('where');
    if (where === 'construct' || REFUSED_EARLIER.has(id)) expect(episode.status).toBe('refused');
    else if (where === 'reset') expect(episode).toMatchObject({ status: 'no_result', cause: 'environment_error' });
    else if (where === 'rollout') expect(episode).toMatchObject({ status: 'no_result', cause: 'policy_rejected' });
    else {
      if (episode.status !== 'completed') throw new Error(episode.status);
      const step = episode.trajectory.transitions[Number(raised.get('step') ?? 0)];
      expect(step?.reward).toBeLessThan(0);
      expect(isMap(step?.info) && step.info.get('error')).toBeTypeOf('string');
    }
  });
});
