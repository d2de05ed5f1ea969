// An environment's context over a subprocess box that is opened on demand, and closed after the test file.

import { afterAll } from 'vitest';
import type { Environment, EnvironmentContext } from '../../../src/shared/environment.ts';
import { toValue } from '../../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../../src/shared/json/value.ts';
import { type Box, DEFAULT_LIMITS } from '../../../src/shared/sandbox.ts';
import { ENVIRONMENT_CONFIGS } from '../../../src/shared/spec/environment-config.ts';
import { makeEnvironment } from '../../../src/workers/rollout/environments/registry.ts';
import { type Episode, runEpisode } from '../../../src/workers/rollout/episode.ts';
import { scriptedPolicy } from '../../../src/workers/rollout/policies/scripted.ts';
import { createSubprocessDriver } from '../../../src/workers/rollout/sandbox/subprocess.ts';

const driver = createSubprocessDriver();
afterAll(() => driver.close());
const LIMITS = { ...DEFAULT_LIMITS, image: 'none' };

export function testContext(options: Partial<EnvironmentContext> = {}): EnvironmentContext {
  let box: Promise<Box> | null = null;
  const { signal } = new AbortController();
  return {
    box: () => {
      box ??= driver.open(LIMITS, { farm: 'test', worker: 'test' }, signal);
      return box;
    },
    stepTimeoutMs: 30_000,
    outputBytes: 256 * 1024,
    signal,
    ...options,
  };
}

/** An environment from a config in plain data; throws what is wrong with it. */
export function build(name: string, config: unknown, options: Partial<EnvironmentContext> = {}): Environment {
  const kind = ENVIRONMENT_CONFIGS.get(name);
  if (!kind) throw new Error(`no environment ${name}`);
  const value = toValue(config) as ValueMap;
  const problems = kind.check(value);
  if (problems.length > 0) throw new Error(problems.map((p) => `${p.path} ${p.message}`).join('; '));
  return makeEnvironment(name, kind.resolve(value), testContext(options));
}

export function playActions(
  environment: Environment,
  actions: Value[],
  knownSignature: string | null = null,
): Promise<Episode> {
  return runEpisode({
    environment,
    seed: 1n,
    policy: scriptedPolicy(actions),
    maxSteps: Math.max(actions.length, 1),
    signal: new AbortController().signal,
    knownSignature,
  });
}
