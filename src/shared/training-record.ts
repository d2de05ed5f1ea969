// What trainers take from an episode: a record a step, of what the policy saw, what it answered and what that earned.
// The shape, the text and the order of crucible's `to_records` and `write_jsonl`.

import { dumpJson } from './json/json.ts';
import { mapOf, type Value } from './json/value.ts';
import type { Trajectory } from './trajectory.ts';

export interface TrainingRecord {
  env_id: Value;
  seed: Value;
  /** From 0. */
  step: number;
  prompt: Value;
  completion: Value;
  reward: Value;
}

type Render = (value: Value) => Value;

/** Text stays as it is; anything else becomes JSON with sorted keys. */
export function plainText(value: Value): Value {
  return typeof value === 'string' ? value : dumpJson(value, { sortKeys: true });
}

/** One record a step, in order. The hooks say how an observation and an action become text; what they throw is thrown. */
export function trainingRecords(
  trajectory: Trajectory,
  render: { observation?: Render; action?: Render } = {},
): TrainingRecord[] {
  const { observation = plainText, action = plainText } = render;
  return trajectory.transitions.map((transition, step) => ({
    env_id: trajectory.envId,
    seed: trajectory.seed,
    step,
    prompt: observation(transition.observation),
    completion: action(transition.action),
    reward: transition.reward,
  }));
}

/** One line of JSONL with its newline, ASCII, as `json.dumps(record, sort_keys=True)`. */
export function recordLine(record: TrainingRecord): string {
  return `${dumpJson(mapOf({ ...record, step: BigInt(record.step) }), { sortKeys: true })}\n`;
}

/** One line of a dataset of prompts alone (crucible's `to_prompt_dataset`): what a trainer that samples itself starts from. */
export function promptLine({ prompt, env_id }: TrainingRecord): string {
  return `${dumpJson(mapOf({ prompt, env_id }))}\n`;
}
