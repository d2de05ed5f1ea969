// A file of completions: lines `{"task_id", "action" | "actions" | "completion"}`. Their form is checked here, never
// what they contain: whatever a policy wrote is played. What no reader of ours holds (nesting without end, an integer of
// very many digits) is replaced by what every environment refuses in an action, so that it is played too, and misses.
// Each line is parsed, its task noted, and its value dropped.

import { parseJson, type ReadOptions } from '../json/json.ts';
import { isMap, type Value, type ValueMap } from '../json/value.ts';
import type { LineFile } from './file.ts';
import { type ProblemList, show, suggestion } from './problem.ts';
import { MAX_DEPTH, readLine, type TaskList } from './tasks.ts';

/** How a member acts, as given. */
export type GivenPlay = { kind: 'actions'; actions: Value } | { kind: 'completion'; completion: Value };

const READ: ReadOptions = { duplicates: 'top', maxDepth: MAX_DEPTH, beyond: 'replace' };

const FORMS = ['action', 'actions', 'completion'] as const;

/** Which lines belong to which task, in order: `lines[starts[t]..starts[t + 1]]` are those of task `t`. */
export interface Assignment {
  starts: Uint32Array;
  lines: Uint32Array;
}

export interface CompletionsRule {
  tasks: TaskList;
  /** Null: the group size itself is at fault, and nothing is counted. */
  groupSize: number | null;
  cycle: boolean;
  /** Further groups that a task may have, of lines that are left over. */
  refillDegenerate: number;
}

export function assignCompletions(
  file: LineFile,
  rule: CompletionsRule,
  problems: ProblemList,
  warnings: string[],
): Assignment {
  const { tasks } = rule;
  const before = problems.items.length;
  const owner = new Int32Array(file.count).fill(-1);
  const counts = new Uint32Array(tasks.lines.count);
  for (let i = 0; i < file.count && !problems.full; i++) {
    const task = checkLine(file, i, tasks, problems);
    if (task === null) continue;
    owner[i] = task;
    counts[task] = (counts[task] as number) + 1;
  }
  const starts = new Uint32Array(counts.length + 1);
  for (const [i, n] of counts.entries()) starts[i + 1] = (starts[i] as number) + n;
  const lines = new Uint32Array(starts[counts.length] as number);
  const next = starts.slice();
  for (const [i, task] of owner.entries()) {
    if (task < 0) continue;
    const slot = next[task] as number;
    lines[slot] = i;
    next[task] = slot + 1;
  }
  // Where lines are at fault, counting them would only repeat it.
  if (problems.items.length === before) checkCounts(file, counts, rule, problems, warnings);
  return { starts, lines };
}

/** The play on a line that was checked before. */
export function readPlay(file: LineFile, line: number): GivenPlay {
  const map = parseJson(file.text(line), READ) as ValueMap;
  if (map.has('completion')) return { kind: 'completion', completion: map.get('completion') as Value };
  return {
    kind: 'actions',
    actions: map.has('actions') ? (map.get('actions') as Value) : [map.get('action') as Value],
  };
}

function checkLine(file: LineFile, index: number, tasks: TaskList, problems: ProblemList): number | null {
  const report = (path: string, message: string): null => {
    problems.add({ file: file.shown, line: file.line(index), path, message });
    return null;
  };
  const value = readLine(file, index, READ, problems);
  if (value === undefined) return null;
  if (!isMap(value))
    return report('', `must be an object with task_id and ${FORMS.join(' or ')}, given ${show(value)}`);
  const forms = FORMS.filter((form) => value.has(form));
  if (forms.length === 0) report('', `needs one of ${FORMS.join(', ')}`);
  if (forms.length > 1) report('', `has ${forms.join(' and ')}; one of them is allowed`);
  const actions = value.get('actions');
  if (actions !== undefined && (!Array.isArray(actions) || actions.length === 0))
    report('actions', `must be a list of at least one action, given ${show(actions)}`);
  const id = value.get('task_id');
  if (id === undefined) return report('task_id', 'is required: the id of a task');
  if (typeof id !== 'string') return report('task_id', `must be a text, given ${show(id)}`);
  const task = tasks.index.get(id);
  if (task !== undefined) return task;
  // Naming every id of a long list would help nobody.
  const near = tasks.index.size <= 50 ? `; ${suggestion(id, [...tasks.index.keys()])}` : '';
  return report('task_id', `there is no task ${JSON.stringify(id)}${near}`);
}

function checkCounts(
  file: LineFile,
  counts: Uint32Array,
  rule: CompletionsRule,
  problems: ProblemList,
  warnings: string[],
): void {
  const { groupSize, cycle, tasks, refillDegenerate } = rule;
  if (groupSize === null) return;
  let refillable = false;
  let left = 0;
  const generous: string[] = [];
  for (const [id, task] of tasks.index) {
    const n = counts[task] as number;
    if (n === 0 || (n < groupSize && !cycle)) {
      const enough = n === 0 ? '' : `, or \`policy.cycle: true\` to begin again from the first`;
      const message = `task ${JSON.stringify(id)} has ${n} ${n === 1 ? 'completion' : 'completions'}, fewer than group_size ${groupSize}: add lines${enough}`;
      problems.add({ file: file.shown, path: '', message });
    } else {
      const used = groupSize * Math.min(Math.floor(n / groupSize), 1 + refillDegenerate);
      if (used > groupSize) refillable = true;
      if (n <= used || n < groupSize) continue;
      left += n - used;
      if (generous.length < 3) generous.push(id);
    }
  }
  if (left > 0)
    warnings.push(
      `${file.shown}: ${left} ${left === 1 ? 'line is' : 'lines are'} left unused, beyond group_size ${groupSize}${refillDegenerate > 0 ? ' and whole groups to refill with' : ''} (${generous.join(', ')}${generous.length === 3 ? ', …' : ''})`,
    );
  if (refillDegenerate > 0 && !refillable && problems.items.length === 0)
    warnings.push(
      `groups.refill_degenerate has nothing to refill with: no task in ${file.shown} has ${2 * groupSize} lines, which is twice group_size`,
    );
}
