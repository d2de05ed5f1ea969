// A policy that plays a list of actions, one a step, whatever it sees, and then has none left.

import type { Value } from '../../../shared/json/value.ts';
import type { Policy } from '../policy.ts';

export function scriptedPolicy(actions: readonly Value[]): Policy {
  let next = 0;
  return {
    async act() {
      const action = actions[next++];
      return action === undefined ? { end: true } : { action };
    },
  };
}
