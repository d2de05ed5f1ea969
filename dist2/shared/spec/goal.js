// A terminal task's goal as data: what must hold of the work folder's files. Checked with the config, judged out here
// over files that were read from the box, never inside it.
import { isMap } from '../json/value.js';
import { aText, checkFields, shown } from './config-fields.js';
const PATH = { name: 'path', check: aText };
const KIND = { name: 'kind', check: aText };
const GOALS = new Map([
    ['has_file', [KIND, PATH]],
    ['no_file', [KIND, PATH]],
    ['file_equals', [KIND, PATH, { name: 'text', check: aText }]],
    ['file_contains', [KIND, PATH, { name: 'needle', check: aText }]],
    [
        'file_count',
        [
            KIND,
            {
                name: 'count',
                check: (value, path, problems) => {
                    if (typeof value !== 'bigint' || value < 0n)
                        problems.push({ path, message: `${shown(value)} is given, an integer of 0 or more is needed` });
                },
            },
        ],
    ],
]);
export const checkGoal = (goal, path, problems) => {
    if (!isMap(goal)) {
        problems.push({ path, message: `${shown(goal)} is given, an object with kind, or with all, is needed` });
        return;
    }
    const kind = goal.get('kind');
    if (kind === undefined && goal.has('all')) {
        checkFields(goal, path, [{ name: 'all', check: checkAll }], problems);
        return;
    }
    const fields = typeof kind === 'string' ? GOALS.get(kind) : undefined;
    if (fields)
        checkFields(goal, path, fields, problems);
    else {
        const given = kind === undefined ? 'nothing' : shown(kind);
        problems.push({ path: `${path}.kind`, message: `${given} is given; allowed: ${[...GOALS.keys()].join(', ')}` });
    }
};
const checkAll = (goals, path, problems) => {
    if (!Array.isArray(goals) || goals.length === 0) {
        problems.push({ path, message: `${shown(goals)} is given, a list of one or more goals is needed` });
    }
    else
        for (const [i, goal] of goals.entries())
            checkGoal(goal, `${path}[${i}]`, problems);
};
/** Whether a checked goal holds over files of text. */
export function goalHolds(goal, files) {
    if (!isMap(goal))
        return false;
    const all = goal.get('all');
    if (Array.isArray(all))
        return all.every((part) => goalHolds(part, files));
    const content = files.get(goal.get('path'));
    switch (goal.get('kind')) {
        case 'has_file':
            return content !== undefined;
        case 'no_file':
            return content === undefined;
        case 'file_equals':
            return content !== undefined && content === goal.get('text');
        case 'file_contains':
            return content?.includes(goal.get('needle')) ?? false;
        case 'file_count':
            return BigInt(files.size) === goal.get('count');
        default:
            return false;
    }
}
