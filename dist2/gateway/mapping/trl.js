// TRL's `reward_func(prompts, completions, **columns)`, mapped as the Python library's adapter maps it: each column
// that is a list gives its items to the samples' metadata; one that is shorter leaves the rest without, a longer one
// is cut.
import { flatten } from './reward-call.js';
export function trlCall(prompts, completions, columns) {
    const metadata = completions.map(() => new Map());
    for (const [name, values] of columns) {
        if (!Array.isArray(values))
            continue;
        for (const [i, value] of values.slice(0, metadata.length).entries())
            metadata[i]?.set(name, value);
    }
    return { prompts, completions: completions.map(flatten), metadata };
}
