// veRL's `compute_score(data_source, solution_str, ground_truth, extra_info)`: one sample a call, mapped as the Python
// library's adapter maps it: `extra_info` is the metadata, and the label and the source stand in it where it has none.
import { isMap } from '../../shared/json/value.js';
import { str } from '../../shared/python/text.js';
import { flatten } from './reward-call.js';
export function verlCall(sample, goldKey = 'gold') {
    const extra = isMap(sample.extraInfo) ? sample.extraInfo : new Map();
    const metadata = new Map(extra);
    const setDefault = (key, value) => {
        if (value !== undefined && value !== null && !metadata.has(key))
            metadata.set(key, value);
    };
    setDefault(goldKey, sample.groundTruth);
    setDefault('data_source', sample.dataSource);
    return {
        prompts: [extra.has('prompt') ? str(extra.get('prompt') ?? null) : ''],
        completions: [flatten(sample.solution === undefined ? '' : sample.solution)],
        metadata: [metadata],
    };
}
