// crucible's `to_records`, `write_jsonl` and `to_prompt_dataset`: records per trajectory, the file's exact text, the prompts.

import { dumpJson, parseJson } from '../../src/shared/json/json.ts';
import { isMap, mapOf, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { promptLine, recordLine, trainingRecords } from '../../src/shared/training-record.ts';
import type { Trajectory } from '../../src/shared/trajectory.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, type Verdict } from './verdict.ts';

/** The render hooks of the cases, by name. */
const HOOKS: Record<string, (value: Value) => Value> = {
  brackets: (value) => `[${dumpJson(value)}]`,
  task: (value) => {
    const found = isMap(value) ? value.get('task') : undefined;
    if (found === undefined) throw new Error("'task'");
    return found;
  },
  empty: () => '',
  number: () => 7n,
  raises: () => {
    throw new Error('no ink');
  },
};

export function runExport(one: VectorCase): Verdict {
  const hook = (name: string): ((value: Value) => Value) | undefined => {
    const given = one.in.get(name);
    return typeof given === 'string' ? HOOKS[given] : undefined;
  };
  const [observation, action] = [hook('render_observation'), hook('render_action')];
  const hooks = { ...(observation ? { observation } : {}), ...(action ? { action } : {}) };
  const raises = one.out.get('raises') as ValueMap | undefined;
  let each: ReturnType<typeof trainingRecords>[];
  try {
    each = (one.in.get('trajectories') as ValueMap[]).map((given) => trainingRecords(trajectoryOf(given), hooks));
  } catch (error) {
    return judge(one, raises?.get('message') === (error as Error).message, `raises ${(error as Error).message}`);
  }
  if (raises) return differ('makes records, and the library raises');
  const flat = each.flat();
  const values = each.map((records) => records.map((r) => mapOf({ ...r, step: BigInt(r.step) })));
  const prompts = flat.map((record) => parseJson(promptLine(record)));
  const text = flat.map(recordLine).join('');
  if (!sameAsReference(values, one.out.get('records') as Value)) return differ('other records');
  if (!sameAsReference(text, one.out.get('jsonl') as Value)) return differ(`writes ${text.slice(0, 200)}`);
  if (!sameAsReference(BigInt(flat.length), one.out.get('count') as Value)) return differ('another count');
  return judge(one, sameAsReference(prompts, one.out.get('prompt_dataset') as Value), 'other prompts');
}

function trajectoryOf(given: ValueMap): Trajectory {
  const steps = given.get('steps') as [Value, Value, Value][];
  return {
    version: 3n,
    envId: given.get('env_id') as Value,
    seed: given.get('seed') as Value,
    initialObservation: null,
    envConfig: new Map(),
    transitions: steps.map(([observation, action, reward]) => ({
      observation,
      action,
      reward,
      done: false,
      info: new Map(),
      digest: '',
    })),
    totalReward: 0,
    finalObservation: undefined,
  };
}
