// veRL's `compute_score(data_source, solution_str, ground_truth, extra_info)`: one sample a call, mapped as the Python
// library's adapter maps it: `extra_info` is the metadata, and the label and the source stand in it where it has none.

import { isMap, type Value, type ValueMap } from '../../shared/json/value.ts';
import { str } from '../../shared/python/text.ts';
import { flatten, type RewardCall } from './reward-call.ts';

/** Each is undefined where the caller left it out. */
export interface VerlSample {
  dataSource?: Value | undefined;
  solution?: Value | undefined;
  groundTruth?: Value | undefined;
  extraInfo?: Value | undefined;
}

export function verlCall(sample: VerlSample, goldKey = 'gold'): RewardCall {
  const extra = isMap(sample.extraInfo) ? sample.extraInfo : new Map<string, Value>();
  const metadata: ValueMap = new Map(extra);
  const setDefault = (key: string, value: Value | undefined): void => {
    if (value !== undefined && value !== null && !metadata.has(key)) metadata.set(key, value);
  };
  setDefault(goldKey, sample.groundTruth);
  setDefault('data_source', sample.dataSource);
  return {
    prompts: [extra.has('prompt') ? str(extra.get('prompt') ?? null) : ''],
    completions: [flatten(sample.solution === undefined ? '' : sample.solution)],
    metadata: [metadata],
  };
}
