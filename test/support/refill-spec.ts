// Tasks whose answers are all worth the same, and tasks whose answers are not, with lines left over to refill from.

/** Found at the latest with the last guess, and never at the same one from both ends. */
const UP = [1, 2, 3, 4, 5, 6, 7, 8];
const DOWN = UP.toReversed();

/** The pairs of answers of a task, and how many groups its run has for it. */
const KINDS = {
  helped: {
    pairs: [
      [UP, UP],
      [UP, DOWN],
      [UP, UP],
    ],
    groups: 2,
  },
  hopeless: {
    pairs: [
      [UP, UP],
      [DOWN, DOWN],
      [UP, UP],
      [UP, DOWN],
    ],
    groups: 3,
  },
  telling: {
    pairs: [
      [UP, DOWN],
      [UP, UP],
    ],
    groups: 1,
  },
  spent: { pairs: [[UP, UP], [UP]], groups: 1 },
};
export type Kind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as Kind[];

/** Four kinds of tasks in turn, or those that are named, groups of two, at most two refills. `each`: how often. */
export function refillSpec(
  each: number,
  write: (name: string, content: string) => string,
  names: readonly Kind[] = NAMES,
) {
  const kinds = Array.from({ length: each }, () => names).flat();
  const ids = kinds.map((kind, i) => `${kind}-${i}`);
  const lines = kinds.flatMap((kind, i) =>
    KINDS[kind].pairs.flat().map((actions) => `${JSON.stringify({ task_id: ids[i], actions })}\n`),
  );
  const path = write('answers.jsonl', lines.join(''));
  const spec = {
    name: 'refilled',
    group_size: 2,
    tasks: ids.map((id, seed) => ({ id, env: 'guess', seed, config: { low: 1, high: 8, max_guesses: 8 } })),
    policy: { kind: 'completions', path },
    groups: { refill_degenerate: 2 },
  };
  const groups = kinds.reduce((n, kind) => n + KINDS[kind].groups, 0);
  /** Rewards that differ (1) or not (0), of the groups of each task in their order. */
  const expected = Object.fromEntries(
    kinds.map((kind, i) => [
      ids[i] as string,
      KINDS[kind].pairs.slice(0, KINDS[kind].groups).map(([a, b]) => (a === b ? 0 : 1)),
    ]),
  );
  return { spec, groups, expected };
}
