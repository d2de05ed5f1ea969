// A policy acts: it gets the observation and gives the next action, or says that it has none left.

import type { Value } from '../../shared/json/value.ts';

export interface Policy {
  /** The next action, or `{ end: true }` when there is none left. */
  act(observation: Value, signal: AbortSignal): Promise<{ action: Value } | { end: true }>;
}
