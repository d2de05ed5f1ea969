// The environment contract, crucible's: `reset(seed)` and the actions determine everything that follows.
// An environment is a trusted state machine in this process; whatever is untrusted runs in a box (sandbox.ts)
// that it opens through its context, and is judged out here.

import type { Value, ValueMap } from './json/value.ts';
import type { Diagnostic } from './outcome.ts';
import type { Box, BoxLost, GradeLevel } from './sandbox.ts';

export interface StepResult {
  observation: Value;
  reward: number;
  done: boolean;
  info: ValueMap;
  /** What befell the action itself (a timeout, an output cap, …), in the order in which it happened. Not part of the trajectory. */
  diagnostics: Diagnostic[];
}

export interface EnvironmentContext {
  /** The episode's box, opened when first asked for. Throws BoxLost if it cannot be had. */
  box(): Promise<Box>;
  /** Upper bound of one step in ms: the sandbox's `timeout_s`; the task's own timeout counts where it is smaller. */
  stepTimeoutMs: number;
  outputBytes: number;
  signal: AbortSignal;
}

export interface Environment {
  readonly name: string;
  /** Starts a fresh episode that `seed` alone determines. */
  reset(seed: Value): Promise<Value>;
  /** Never throws for what an action contains: that is a step with the miss reward and `info.error`. Throws BoxLost when the box died, whoever is to blame. */
  step(action: Value): Promise<StepResult>;
  /** The step to record instead when the action killed its box: the miss reward, `info.error`, done. */
  lostBox(lost: BoxLost): StepResult;
  /** Stable hash of the observable state after the last step (16 hex digits), or "" where there is none. */
  digest(): string;
  /** What rebuilds an identical environment: the task's config with defaults filled in. */
  config(): ValueMap;
  /** A text completion as an action: the last fenced block, else all of it, in the form this environment takes. */
  parseCompletion(text: string): Value;
  /** How its grades are judged, for the certificate. */
  readonly grade: GradeLevel | 'outside' | 'verifier';
  /** Whether a prepared interpreter made its grades; absent where there is none of its kind. */
  readonly warm?: 'python3' | null;
}

/** The environment itself is at fault (a seed script that fails, files that do not fit), not the action: no result, never a reward. */
export class EnvironmentError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'EnvironmentError';
  }
}

/** Builds an environment from a config that `environment-config.ts` passed and resolved. */
export type EnvironmentFactory = (config: ValueMap, context: EnvironmentContext) => Environment;

export interface Problem {
  /** Dotted path of the field, `config.low`. */
  path: string;
  message: string;
}
