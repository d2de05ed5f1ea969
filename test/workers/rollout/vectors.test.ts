// The reference episodes of the Python library, played by our environments: the same file byte for byte, the same
// digests and fingerprint, and a clean replay. Where we differ, the case stands below with its reason.

import { describe, expect, it } from 'vitest';
import { ENVIRONMENT_CONFIGS } from '../../../src/shared/environment-config.ts';
import { canonicalText, fingerprint, parseTrajectory } from '../../../src/shared/trajectory.ts';
import { isMap, mapOf, pyTruthy, type Value, type ValueMap } from '../../../src/shared/value.ts';
import { makeEnvironment } from '../../../src/workers/rollout/environments/registry.ts';
import { type Episode, runEpisode } from '../../../src/workers/rollout/episode.ts';
import type { Policy } from '../../../src/workers/rollout/policy.ts';
import { replayTrajectory } from '../../../src/workers/rollout/replay.ts';
import { readVectors, type VectorCase } from '../../support/vector-file.ts';
import { testContext } from './test-context.ts';

/** The library plays these; we refuse the config before anything starts. */
const REFUSED_CONFIG: ReadonlyMap<string, string> = new Map([
  ['traj.guess.config-int-valued-float', 'bounds of 1.0 and 9.0: a TypeError from Python 3.12 on'],
]);

/** The library raises in the middle of the episode; we refuse the config before anything starts. */
const REFUSED_EARLIER: ReadonlyMap<string, string> = new Map([
  ['traj.command.content-number', 'a file whose content is a number'],
  ['traj.http-task.response-not-mapping', 'a recorded response that is text'],
  ['traj.http-task.response-null', 'a recorded response that is null'],
  ['traj.terminal.goal-raises', 'a goal that raises is code, ours are data'],
  ['traj.terminal.file-escape', 'a file outside the work folder'],
]);

/** The box sets HOME and LANG, the library passes neither on: commands that print them differ, here and nowhere else. */
const PRINTS_ENVIRONMENT = ['traj.command.env-no-home', 'traj.terminal.env'];

/** These two are registered here and carry their check or goal as data; there they are nameless and have no config. */
const NAMED_HERE = ['code-task', 'terminal'];

/** The library's scripted agent: the last action again when it runs out. */
function repeating(actions: Value[]): Policy {
  let next = 0;
  return { act: async () => ({ action: actions[Math.min(next++, actions.length - 1)] as Value }) };
}

/** Graders and goals are code there and data here. */
function configOf(given: ValueMap): Value {
  const config = given.get('config') as Value;
  const goal = given.get('goal');
  const grader = given.get('grader');
  if (!isMap(config)) return config;
  if (isMap(goal)) return new Map([...config, ['goal', goalOf(goal)]]);
  return isMap(grader) ? new Map([...config, ['check', mapOf({ command: checkOf(grader) })]]) : config;
}

function goalOf(goal: ValueMap): Value {
  if (goal.get('kind') !== 'value') return goal;
  return mapOf({ kind: pyTruthy(goal.get('value')) ? 'no_file' : 'has_file', path: 'never made' });
}

function checkOf(grader: ValueMap): Value {
  const [path, text, needle] = ['path', 'text', 'needle'].map((key) => (grader.get(key) ?? '') as string) as [string, string, string];
  const python = (code: string): Value => ['/usr/bin/python3', '-c', `import os, sys\npath, text, needle = sys.argv[1:]\n${code}`, path, text, needle];
  switch (grader.get('kind')) {
    case 'file_equals':
      return python('sys.exit(open(path, newline="", encoding="utf-8").read() != text)');
    case 'file_contains':
      return python('sys.exit(needle not in open(path, encoding="utf-8").read())');
    case 'no_file':
      return python('sys.exit(os.path.exists(path))');
    case 'command':
      return grader.get('argv') as Value;
    case 'value':
      return [pyTruthy(grader.get('value')) ? 'true' : 'false'];
    default:
      return ['false'];
  }
}

async function play(c: VectorCase): Promise<Episode | { status: 'refused' }> {
  const kind = ENVIRONMENT_CONFIGS.get(c.in.get('env') as string);
  if (!kind) throw new Error('an unknown environment');
  const config = configOf(c.in);
  if (kind.check(config).length > 0 || !isMap(config)) return { status: 'refused' };
  const actions = c.in.get('actions') as Value[];
  return runEpisode({
    environment: makeEnvironment(kind.name, kind.resolve(config), testContext()),
    seed: c.in.get('seed') as Value,
    policy: repeating(actions),
    maxSteps: Number(c.in.get('max_steps') ?? actions.length),
    signal: new AbortController().signal,
    knownSignature: null,
  });
}

/** The canonical text without what only a registered environment has. */
function unnamed(bytes: Buffer | string): string {
  return canonicalText({ ...parseTrajectory(bytes), envId: '', envConfig: new Map() });
}

const cases = readVectors('cr-trajectories').map((c) => [c.id, c] as const);
const played = cases.filter(
  ([id, c]) => !c.out.has('raises') && !REFUSED_CONFIG.has(id) && !PRINTS_ENVIRONMENT.includes(id),
);
const raising = cases.filter(([, c]) => c.out.has('raises'));

describe('an episode that the library records', () => {
  it.each(played)('%s', async (_, c) => {
    const episode = await play(c);
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
    const report = await replayTrajectory(parseTrajectory(episode.bytes), (name, config) =>
      makeEnvironment(name, config, testContext()),
    );
    expect(report).toEqual({ ok: true, steps: episode.steps, mismatches: [], unrecorded: [] });
  });
});

describe('an episode on which the library raises', () => {
  it.each(raising)('%s', async (id, c) => {
    const raised = c.out.get('raises') as ValueMap;
    const episode = await play(c);
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

describe('a config that the library plays and we refuse', () => {
  it.each([...REFUSED_CONFIG.keys()])('%s', async (id) => {
    const c = cases.find(([name]) => name === id)?.[1] as VectorCase;
    expect(await play(c)).toEqual({ status: 'refused' });
  });
});
