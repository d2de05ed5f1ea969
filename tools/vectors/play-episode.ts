// Playing a reference episode: the library's scripted agent, and its graders and goals, which are code there, as data.

import type { EnvironmentContext } from '../../src/shared/environment.ts';
import { dumpJson } from '../../src/shared/json/json.ts';
import { isMap, mapOf, pyTruthy, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { ENVIRONMENT_CONFIGS } from '../../src/shared/spec/environment-config.ts';
import { canonicalText, parseTrajectory } from '../../src/shared/trajectory.ts';
import { makeEnvironment } from '../../src/workers/rollout/environments/registry.ts';
import { type Episode, runEpisode } from '../../src/workers/rollout/episode.ts';
import type { Policy } from '../../src/workers/rollout/policy.ts';
import type { VectorCase } from './vector-file.ts';

/** A box sets HOME and LANG, the library passes neither on: a command that asks for them differs, here and nowhere else. */
export function printsEnvironment(one: VectorCase): boolean {
  return /HOME|LANG\b|printenv|\benv\b/.test(dumpJson(one.in.get('actions') ?? null));
}

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
  const [path, text, needle] = ['path', 'text', 'needle'].map((key) => (grader.get(key) ?? '') as string) as [
    string,
    string,
    string,
  ];
  const python = (code: string): Value => [
    '/usr/bin/python3',
    '-c',
    `import os, sys\npath, text, needle = sys.argv[1:]\n${code}`,
    path,
    text,
    needle,
  ];
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

export async function playCase(c: VectorCase, context: EnvironmentContext): Promise<Episode | { status: 'refused' }> {
  const kind = ENVIRONMENT_CONFIGS.get(c.in.get('env') as string);
  if (!kind) throw new Error('an unknown environment');
  const config = configOf(c.in);
  if (kind.check(config).length > 0 || !isMap(config)) return { status: 'refused' };
  const actions = c.in.get('actions') as Value[];
  return runEpisode({
    environment: makeEnvironment(kind.name, kind.resolve(config), context),
    seed: c.in.get('seed') as Value,
    policy: repeating(actions),
    maxSteps: Number(c.in.get('max_steps') ?? actions.length),
    signal: new AbortController().signal,
    knownSignature: null,
  });
}

/** The canonical text without what only a registered environment has. */
export function unnamed(bytes: Buffer | string): string {
  return canonicalText({ ...parseTrajectory(bytes), envId: '', envConfig: new Map() });
}
