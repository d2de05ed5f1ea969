// What each environment's `config` may say: checked before anything starts (by the producer, which never meets an
// environment) and resolved for the worker that builds one. Names and defaults are crucible's (INTERFACE, environments).

import type { Problem } from './environment.ts';
import type { Value, ValueMap } from './value.ts';

export interface EnvironmentConfig {
  readonly name: string;
  /** Whether its episodes may open a box: light episodes take another lane. */
  readonly usesSandbox: boolean;
  /** Every problem, with its path inside the config (`config.low`); empty if sound. Unknown keys are problems. */
  check(config: Value): Problem[];
  /** The config with defaults filled in, in crucible's key order. Only for one that `check` passed. */
  resolve(config: ValueMap): ValueMap;
}

export const ENVIRONMENT_CONFIGS: ReadonlyMap<string, EnvironmentConfig> = new Map();
