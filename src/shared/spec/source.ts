// The tasks of a checked spec with how their members act, read one after another from the bytes that were checked:
// what the planner goes through, as often as it likes, without holding more than one task's values.

import type { Value } from '../json/value.ts';
import { type Assignment, type GivenPlay, readPlay } from './completions.ts';
import type { LineFile } from './file.ts';
import { readTask, type Task, type TaskList } from './tasks.ts';

export interface SourceTask extends Task {
  seed: bigint;
  /** One a member, the same object where members share a line; a single one where all members play the same. */
  plays: GivenPlay[];
  /** Its place in the list. */
  place: number;
  /** Whether its lines make one group more, of answers that no group before had. */
  more: boolean;
}

export interface TaskSource {
  /** Tasks, hence groups. */
  readonly count: number;
  readonly environments: ReadonlySet<string>;
  /** How many tasks go to the verifier. */
  readonly verified: number;
  /**
   * In round 0 all; in a later one those whose lines make so many further groups, with what these play. `among`: the places
   * of those that had more in the round before, so that the others are not gone through again.
   */
  tasks(round?: number, among?: readonly number[]): Iterable<SourceTask>;
  /** Lets go of the files' texts: whoever goes on for hours needs them no more. */
  release(): void;
}

/** How the members act: the lines of a file, or a fixed list of actions. */
export type Policy =
  | { kind: 'scripted'; actions: Value[] }
  | { kind: 'completions'; file: LineFile; cycle: boolean; assignment: Assignment };

export function taskSource(list: TaskList, policy: Policy, seed: bigint, groupSize: number): TaskSource {
  const { environments, verified } = list;
  const { count } = list.lines;
  let held: { lines: LineFile; policy: Policy } | null = { lines: list.lines, policy };
  return {
    count,
    environments,
    verified,
    release: () => {
      held = null;
    },
    *tasks(round = 0, among) {
      if (held === null) throw new Error('the tasks of a spec were let go, and are asked for');
      const { lines, policy } = held;
      const shared: GivenPlay[] = policy.kind === 'scripted' ? [{ kind: 'actions', actions: policy.actions }] : [];
      for (let at = 0; at < (among?.length ?? count); at++) {
        const i = among?.[at] ?? at;
        const whole = policy.kind === 'scripted' ? 0 : Math.floor(linesOf(policy.assignment, i).length / groupSize);
        if (round > 0 && round >= whole) continue;
        const task = readTask(lines, i);
        const plays = policy.kind === 'scripted' ? shared : playsOf(policy, i, round, groupSize);
        yield { ...task, seed: task.seed ?? seed, plays, place: i, more: round + 1 < whole };
      }
    },
  };
}

function linesOf({ starts, lines }: Assignment, task: number): Uint32Array {
  return lines.subarray(starts[task], starts[task + 1]);
}

function playsOf(
  { file, assignment }: Policy & { kind: 'completions' },
  task: number,
  round: number,
  groupSize: number,
): GivenPlay[] {
  const own = linesOf(assignment, task).subarray(round * groupSize, (round + 1) * groupSize);
  const read = [...own].map((line) => readPlay(file, line));
  return Array.from({ length: groupSize }, (_, member) => read[member % read.length] as GivenPlay);
}
