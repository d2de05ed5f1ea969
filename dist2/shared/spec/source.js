// The tasks of a checked spec with how their members act, read one after another from the bytes that were checked:
// what the planner goes through, as often as it likes, without holding more than one task's values.
import { readPlay } from './completions.js';
import { readTask } from './tasks.js';
export function taskSource(list, policy, seed, groupSize) {
    return {
        count: list.lines.count,
        environments: list.environments,
        verified: list.verified,
        *tasks() {
            const shared = policy.kind === 'scripted' ? [{ kind: 'actions', actions: policy.actions }] : [];
            for (let i = 0; i < list.lines.count; i++) {
                const task = readTask(list.lines, i);
                const plays = policy.kind === 'scripted' ? shared : playsOf(policy.file, policy.assignment, i, groupSize);
                yield { ...task, seed: task.seed ?? seed, plays };
            }
        },
    };
}
function playsOf(file, { starts, lines }, task, groupSize) {
    const own = lines.subarray(starts[task], starts[task + 1]).subarray(0, groupSize);
    const read = [...own].map((line) => readPlay(file, line));
    return Array.from({ length: groupSize }, (_, member) => read[member % read.length]);
}
