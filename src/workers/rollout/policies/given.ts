// The policy of a planned member: its actions, or its completion, fetched from where the plan holds them.

import type { Environment } from '../../../shared/environment.ts';
import type { Value } from '../../../shared/json/value.ts';
import type { Held, Play } from '../../../shared/plan/plan.ts';
import type { Policy } from '../policy.ts';
import { completionPolicy } from './completions.ts';
import { scriptedPolicy } from './scripted.ts';

export async function givenPolicy(
  play: Play,
  read: (held: Held) => Promise<Value>,
  environment: Pick<Environment, 'parseCompletion'>,
): Promise<Policy> {
  if (play.kind === 'completion') return completionPolicy(await read(play.completion), environment);
  const actions = await read(play.actions);
  return scriptedPolicy(Array.isArray(actions) ? actions : [actions]);
}
