// The members of a run under fire, and what each must earn. Most need no sandbox (a guess with a secret that we know, a text for
// the verifier), some play in real ones; neighbours earn different rewards, so that one member's answer in another's place is seen.

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { LAST } from './schedule.ts';

export const GROUP_SIZE = 4;
const MISS = -0.05;
const SOLVED = 1;
const COMMAND_MISS = -0.1;
/** One group in so many plays in sandboxes, one asks the verifier. */
const SANDBOX_ONE_IN = 4;
const VERIFIED_ONE_IN = 3;
/** Powers of two: their sums are exact. */
const WEIGHTS = { format: 0.25, certified: 0.125, correctness: 0.5 };
const NO_WEIGHT = { graded: 0, rejected_penalty: 0, unsupported_penalty: 0, consistency: 0 };
const FLOOR = -1;
const CLIP = [-1, 1];
/** An episode in a sandbox lasts so long at least, and at most. */
const PACE_S = [0.2, 12] as const;
const STEP_S = 60;
/** Few at once, of a small run fewer than are left when the last fault comes: there is always something that is not begun. */
const IN_FLIGHT = { least: 16, most: 48, share: 0.1 } as const;

export interface PlannedMember {
  task: string;
  member: number;
  reward: number;
}

export interface MemberPlan {
  /** Of the spec's file. */
  spec: string;
  members: readonly PlannedMember[];
}

interface Task {
  task: Record<string, unknown>;
  lines: Record<string, unknown>[];
  rewards: number[];
}

export interface Pace {
  /** The run is to last about so long, played by so many sandboxes at once: a fault must find it at work. */
  seconds: number;
  sandboxes: number;
}

/** Writes spec and completions to `folder`. */
export function writeMembers(folder: string, groups: number, platform: { baseUrl: string }, pace: Pace): MemberPlan {
  const played = Math.max(1, (groups * GROUP_SIZE) / SANDBOX_ONE_IN);
  const inFlight = Math.min(
    IN_FLIGHT.most,
    Math.max(IN_FLIGHT.least, Math.floor(groups * GROUP_SIZE * IN_FLIGHT.share)),
  );
  const sandboxes = Math.min(pace.sandboxes, Math.ceil(inFlight / SANDBOX_ONE_IN));
  const each = Math.min(PACE_S[1], Math.max(PACE_S[0], (pace.seconds * sandboxes) / played));
  // What comes last asks the verifier: also its last fault must find somebody who waits for it.
  const tasks = Array.from({ length: groups }, (_, g) => (g >= groups * LAST ? grantTask(g) : taskOf(g, each)));
  const lines = tasks.flatMap((t) => t.lines.map((line) => ({ task_id: t.task.id, ...line })));
  writeFileSync(path.join(folder, 'completions.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const spec = path.join(folder, 'spec.json');
  writeFileSync(
    spec,
    JSON.stringify({
      name: 'chaos',
      seed: 7,
      group_size: GROUP_SIZE,
      tasks: tasks.map((t) => t.task),
      policy: { kind: 'completions', path: 'completions.jsonl' },
      max_steps: 8,
      sandbox: { timeout_s: STEP_S },
      // Nothing is to be lost to a deadline here: that the clock stands while the farm is paused is a test of its own.
      groups: { close: 'all', deadline_s: 3_600 },
      limits: { in_flight: inFlight },
      domain: {
        platform_id: 1,
        base_url: platform.baseUrl,
        query_template: 'May this be permitted? {facts}',
        parser: 'json_block',
      },
      reward: { weights: { ...WEIGHTS, ...NO_WEIGHT }, clip: CLIP },
      verifier: { floor: FLOOR, max_concurrency: 16, batch_size: 8 },
    }),
  );
  const members = tasks.flatMap((t) =>
    t.rewards.map((reward, member) => ({ task: String(t.task.id), member, reward })),
  );
  return { spec, members };
}

function taskOf(g: number, seconds: number): Task {
  if (g % SANDBOX_ONE_IN === 1) return commandTask(g, seconds);
  if (g % VERIFIED_ONE_IN === 0) return grantTask(g);
  return guessTask(g);
}

const indexes = Array.from({ length: GROUP_SIZE }, (_, m) => m);

/** The secret is the only number there is; each member misses another number of times before it says it. */
function guessTask(g: number): Task {
  const misses = (m: number): number => (g + m) % (GROUP_SIZE + 1);
  return {
    task: { id: `guess-${g}`, env: 'guess', config: { low: g, high: g, max_guesses: GROUP_SIZE + 2 } },
    lines: indexes.map((m) => ({ actions: [...Array<number>(misses(m)).fill(g + 1), g] })),
    rewards: indexes.map((m) => [...Array<number>(misses(m)).fill(MISS), SOLVED].reduce((sum, r) => sum + r, 0)),
  };
}

/** Too long to travel inside the ledger, and not to be compressed: such a trajectory is an object in the store. */
function longWords(g: number): string {
  return Array.from({ length: 128 }, (_, i) => createHash('sha256').update(`${g} ${i}`).digest('hex')).join(' ');
}

/** Right, wrong, and none at all; no two ask the same question. */
function grantTask(g: number): Task {
  const kind = (m: number): number => (g + m) % 3;
  const words = longWords(g);
  const decision = (m: number, classification: string): string => {
    const facts = { age: 34, annual_income: g * GROUP_SIZE + m, resident: true, active_grant: false };
    return `${words} <decision>${JSON.stringify({ classification, facts })}</decision>`;
  };
  const certified = WEIGHTS.format + WEIGHTS.certified;
  return {
    task: { id: `grant-${g}`, env: 'text', config: {}, prompt: `Applicant ${g}.`, metadata: { gold: 'permit' } },
    lines: indexes.map((m) => ({
      completion: [`${words} I cannot say.`, decision(m, 'permit'), decision(m, 'deny')][kind(m)],
    })),
    rewards: indexes.map((m) => [FLOOR, certified + WEIGHTS.correctness, certified][kind(m)] as number),
  };
}

function commandTask(g: number, seconds: number): Task {
  const right = (m: number): boolean => (g + m) % 2 === 0;
  return {
    task: {
      id: `command-${g}`,
      env: 'command',
      config: { files: { 'words.txt': longWords(g) }, task: `Say ${g}.`, expected_stdout: `${g}`, timeout: STEP_S },
    },
    lines: indexes.map((m) => ({ action: ['sh', '-c', `sleep ${seconds.toFixed(1)}; echo ${right(m) ? g : 'no'}`] })),
    rewards: indexes.map((m) => (right(m) ? SOLVED : COMMAND_MISS)),
  };
}
