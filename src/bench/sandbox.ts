// `farm bench sandbox`: what a sandboxed step, grade and episode cost, beside a container per grade (crucible's pattern), an
// exec per step and no sandbox at all, in the same rounds on the same machine.

import { readConfig } from '../shared/config.ts';
import { isKnownDead, processIdentity } from '../shared/process-identity.ts';
import { DEFAULT_LIMITS, type SandboxDriver } from '../shared/sandbox.ts';
import { unlessAborted } from '../shared/within.ts';
import { SQL_COMMAND } from '../workers/rollout/environments/sql-task.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';
import { createOwnPool, ownWorker } from '../workers/rollout/sandbox/own-pool.ts';
import { type Latency, latencyOf } from './percentile.ts';
import {
  type Boxes,
  dockerExecArm,
  dockerRunArm,
  freshArm,
  openBoxArm,
  outsideArm,
  recycledArm,
  removeBenchContainers,
  type SandboxArm,
  subprocessArm,
} from './sandbox-arms.ts';
import { type Cell, type Row, rowOf, stretch, type Tally, tallyOf } from './sandbox-cells.ts';
import { type Goal, goalsOf } from './sandbox-goals.ts';
import { type Grades, manyGrades } from './sandbox-grades.ts';
import { type Neighbours, neighbours, type StepCost, stepCost } from './sandbox-steps.ts';
import { GUESS, gradeWork, HTTP, STEPS, sqlWork, terminalWork, type Work } from './sandbox-work.ts';

export interface SandboxBenchOptions {
  seed: bigint;
  full: boolean;
  /** So many grades in recycled boxes instead of the rounds. */
  grades: number | null;
  /** tasks.jsonl and completions.jsonl instead of our own samples. */
  tasks: string | null;
  /** The completions in `tasks` are harmless: the bare subprocess may run them on this machine. */
  trusted: boolean;
  /** Ends it after the work in hand. */
  signal: AbortSignal;
}

export interface SandboxBench {
  rounds: number;
  rows: Row[];
  open_ms: { fresh: Latency; recycled: Latency } | null;
  step: StepCost | null;
  neighbours: Neighbours[];
  grades: Grades | null;
  goals: Goal[];
  containers_left: number;
  notes: string[];
}

interface Scale {
  rounds: number;
  /** Of one cell in one round. */
  sliceMs: number;
  steps: number;
  neighbourRounds: number;
}

const SHORT: Scale = { rounds: 3, sliceMs: 300, steps: 300, neighbourRounds: 2 };
const FULL: Scale = { rounds: 7, sliceMs: 2_000, steps: 2_000, neighbourRounds: 7 };
const FULL_WIDTHS = [1, 2, 4, 8];
const EPISODE_STEPS = 50;

export async function benchSandbox(options: SandboxBenchOptions): Promise<SandboxBench> {
  const id = processIdentity();
  const { signal } = options;
  await removeBenchContainers(isKnownDead, signal);
  const engine = createDockerDriver({ dockerHost: readConfig().dockerHost });
  const driver = createOwnPool(engine, 'command');
  const worker = ownWorker('command');
  let result: SandboxBench;
  try {
    await unlessAborted(signal, driver.prepare(DEFAULT_LIMITS.image));
    try {
      result = await measured(options, driver, worker, id);
    } finally {
      await removeBenchContainers((other) => other === id || isKnownDead(other));
    }
  } finally {
    await driver.close();
  }
  // whatever is still there of ours now would have been left
  return { ...result, containers_left: await engine.sweep('command', (other) => other !== worker) };
}

async function measured(
  options: SandboxBenchOptions,
  driver: SandboxDriver,
  worker: string,
  id: string,
): Promise<SandboxBench> {
  const labels = { farm: 'command', worker };
  const fresh: Boxes = { driver, limits: { ...DEFAULT_LIMITS }, labels, opened: [] };
  const recycled: Boxes = { ...fresh, limits: { ...DEFAULT_LIMITS, recycle: 'bench' }, opened: [] };
  const notes: string[] = [];
  const result = {
    rounds: 0,
    rows: [],
    open_ms: null,
    step: null,
    neighbours: [],
    goals: [],
    notes,
    containers_left: 0,
  };
  if (options.grades !== null) {
    const grades = await manyGrades(
      gradeWork(false, options.tasks),
      recycled,
      options.grades,
      orderOf(options.seed, 0),
      options.signal,
    );
    return { ...result, grades };
  }
  const scale = options.full ? FULL : SHORT;
  const bare = options.tasks === null || options.trusted ? [subprocessArm()] : [];
  if (bare.length === 0)
    notes.push(
      'no bare subprocess beside the grades: completions of others run in sandboxes only (--trusted, if they are harmless)',
    );
  const tallies = cellsOf(options, { fresh, recycled, bare, id }).map(tallyOf);
  await rounds(tallies, scale, options);
  const step = await stepCost(recycled, scale.steps);
  const beside: Neighbours[] = [];
  for (const hogs of [1, 2]) beside.push(await neighbours(fresh, hogs, scale.neighbourRounds, 30));
  const rows = tallies.map(rowOf);
  const open = { fresh: latencyOf(fresh.opened), recycled: latencyOf(recycled.opened) };
  const goals = goalsOf(rows, open.recycled, step, beside);
  return { ...result, rounds: scale.rounds, rows, open_ms: open, step, neighbours: beside, grades: null, goals };
}

async function rounds(tallies: readonly Tally[], scale: Scale, { seed, signal }: SandboxBenchOptions): Promise<void> {
  for (let round = -1; round < scale.rounds; round++) {
    const order = orderOf(seed, round);
    for (const [i, tally] of tallies.entries()) {
      signal.throwIfAborted();
      process.stderr.write(
        `\rbench: round ${Math.max(0, round + 1)} of ${scale.rounds}, ${i + 1} of ${tallies.length}  `,
      );
      // the first round only warms up, which a cell's wider ones need no more
      if (round < 0 && tally.cell.width > 1) continue;
      await stretch(tally, order, round < 0 ? 0 : scale.sliceMs, round >= 0);
    }
  }
  process.stderr.write('\n');
}

function cellsOf(
  options: SandboxBenchOptions,
  arms: { fresh: Boxes; recycled: Boxes; bare: SandboxArm[]; id: string },
): Cell[] {
  const { fresh, recycled, id } = arms;
  const cells: Cell[] = [];
  const add = (work: Work, list: readonly SandboxArm[], widths = work.widths): void => {
    for (const width of options.full ? FULL_WIDTHS : widths) for (const arm of list) cells.push({ work, arm, width });
  };
  const run = dockerRunArm(fresh.limits, id);
  const exec = dockerExecArm(fresh.limits, id);
  const ours = [freshArm(fresh), recycledArm('ours, recycled', recycled)];
  for (const work of STEPS) add(work, [run, exec, openBoxArm('ours, in an open box', recycled), subprocessArm()]);
  add(gradeWork(false, options.tasks), [run, ...ours, ...arms.bare]);
  add(gradeWork(false, options.tasks), [exec], [1, 2]);
  add({ ...gradeWork(true, options.tasks), name: gradeWork(false, options.tasks).name }, [
    recycledArm('ours, recycled, warm', recycled),
  ]);
  add(sqlWork(SQL_COMMAND), [run, exec, ...ours, subprocessArm()]);
  const terminal = terminalWork(EPISODE_STEPS);
  add(terminal, [...(options.full ? [run] : []), exec, ...ours, subprocessArm()]);
  for (const work of [GUESS, HTTP]) add(work, [outsideArm(fresh.limits)]);
  return cells;
}

/** Which item comes when: drawn by the seed, another order in every round, the same for every arm. */
function orderOf(seed: bigint, round: number): number[] {
  const order = Array.from({ length: 10_000 }, (_, i) => i);
  let state = Number(BigInt.asUintN(32, seed * 2654435761n + BigInt(round + 7)));
  for (let i = order.length - 1; i > 0; i--) {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0;
    const j = state % (i + 1);
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}
