// The figures beside what they are to reach: each goal with its ratio, whatever it turns out to be.

import type { Latency } from './percentile.ts';
import type { Row } from './sandbox-cells.ts';
import type { Neighbours, StepCost } from './sandbox-steps.ts';

export interface Goal {
  goal: string;
  wanted: string;
  got: number;
  met: boolean;
}

const atLeast = (goal: string, got: number, wanted: number, unit: string): Goal => ({
  goal,
  wanted: `>= ${wanted}${unit}`,
  got,
  met: got >= wanted,
});
const atMost = (goal: string, got: number, wanted: number, unit: string): Goal => ({
  goal,
  wanted: `<= ${wanted}${unit}`,
  got,
  met: got <= wanted,
});

export function goalsOf(rows: readonly Row[], taken: Latency, step: StepCost, beside: readonly Neighbours[]): Goal[] {
  const goals: Goal[] = [];
  const rate = (work: RegExp, arm: string, width: number): number | null =>
    rows.find((row) => work.test(row.work) && row.arm === arm && row.width === width)?.per_s.median ?? null;
  const compare = (what: string, work: RegExp, ours: string, other: string, wanted: number, widths: number[]): void => {
    for (const width of widths) {
      const [a, b] = [rate(work, ours, width), rate(work, other, width)];
      if (a !== null && b !== null) goals.push(atLeast(`${what}, ${width} wide`, a / b, wanted, 'x'));
    }
  };
  const widths = [1, 2, 4, 8];
  compare('grades, recycled, over docker run', /^grade/, 'ours, recycled', 'docker run', 10, widths);
  compare('grades, recycled, over bare subprocess', /^grade/, 'ours, recycled', 'bare subprocess', 0.7, widths);
  compare('grades, warm, over bare subprocess', /^grade/, 'ours, recycled, warm', 'bare subprocess', 1.3, [2]);
  compare('a step (true) over one exec', /^true$/, 'ours, in an open box', 'container + exec', 30, [1]);
  for (const work of ['sql', 'guess', 'http']) {
    const best = rows
      .filter((row) => row.work === work && /^ours(, recycled)?$/.test(row.arm))
      .map((row) => row.per_s.median);
    if (best.length > 0) goals.push(atLeast(`${work} episodes, at their best width`, Math.max(...best), 100, '/s'));
  }
  goals.push(
    atMost('taking a box from the pool, p50', taken.p50, 20, ' ms'),
    atMost('a step beside its command, p50', step.overhead_ms.p50, 3, ' ms'),
    atMost('a step beside its command, p99', step.overhead_ms.p99, 15, ' ms'),
  );
  for (const one of beside)
    goals.push(
      atMost(`a neighbour's p95 beside ${one.hogs} busy box${one.hogs > 1 ? 'es' : ''}`, one.p95_ratio, 1.5, 'x'),
    );
  return goals;
}
