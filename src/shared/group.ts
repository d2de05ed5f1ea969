// The group record: what a trainer reads (INTERFACE, group record). Mean, std and advantage are made here, by
// one pure function that the results command, the gateway and the collector share: never in Lua, which prints 14 digits.

import { z } from 'zod';
import { sha256 } from './claim.ts';
import { completedSchema, type Member, memberSchema, noResultSchema } from './outcome.ts';

export const CONVENTIONS = ['trl', 'verl', 'openrlhf', 'async_grpo', 'art'] as const;
export type Convention = (typeof CONVENTIONS)[number];
export const CLOSED_BY = ['all', 'at_least', 'deadline', 'cancelled'] as const;

/** A closed group as the ledger keeps it: texts of the members and nothing derived. */
const closedGroupSchema = z.strictObject({
  seq: z.int().positive(),
  group: z.int().nonnegative(),
  task_id: z.string(),
  closed_by: z.enum(CLOSED_BY),
  members: z.array(memberSchema),
  /** The further group of its task that the plan holds ready, if there is one. */
  spare: z.int().positive().optional(),
});
export type ClosedGroup = z.infer<typeof closedGroupSchema>;

/** Groups that were checked: nobody changes one, and whoever hands one on need not check it again. */
const checked = new WeakSet<object>();

/** Throws ZodError for what is not a well-formed group. */
export function checkClosedGroup(data: unknown): ClosedGroup {
  if (typeof data === 'object' && data !== null && checked.has(data)) return data as ClosedGroup;
  const closed = closedGroupSchema.parse(data);
  checked.add(closed);
  return closed;
}

export const groupRecordSchema = z.strictObject({
  cursor: z.string(),
  run: z.string(),
  group: z.int().nonnegative(),
  task_id: z.string(),
  policy_version: z.string().nullable(),
  closed_by: z.enum(CLOSED_BY),
  mean: z.number().nullable(),
  std: z.number().nullable(),
  degenerate: z.boolean(),
  /** The group that is rolled out in its stead: the same task, answers that were not used yet. */
  refilled_by: z.int().positive().optional(),
  members: z.array(z.union([completedSchema.extend({ advantage: z.number() }), noResultSchema])),
});
export type GroupRecord = z.infer<typeof groupRecordSchema>;

// What each trainer computes itself (TRAINERS.md, section 6): n − 1 or n, the term that keeps the division
// finite, and what a lone completed member gets.
const RULES: Record<Convention, { sample: boolean; eps: number; lone: 'zero' | 'reward' }> = {
  trl: { sample: true, eps: 1e-4, lone: 'zero' },
  verl: { sample: true, eps: 1e-6, lone: 'reward' },
  openrlhf: { sample: true, eps: 1e-9, lone: 'zero' },
  async_grpo: { sample: false, eps: 1e-8, lone: 'zero' },
  art: { sample: false, eps: 1e-6, lone: 'zero' },
};

export interface GroupFigures {
  mean: number | null;
  /** Null for fewer than two rewards (sample std is not defined there). */
  std: number | null;
  degenerate: boolean;
  /** Same order as the rewards. */
  advantages: number[];
}

/** GRPO's figures over the completed members' rewards. Pure; every number finite. */
export function groupFigures(rewards: readonly number[], convention: Convention): GroupFigures {
  const rule = RULES[convention];
  const n = rewards.length;
  if (n === 0) return { mean: null, std: null, degenerate: true, advantages: [] };
  // Equal rewards: exactly no variance, whatever the rounding of the sum says.
  const flat = rewards.every((r) => r === rewards[0]);
  const mean = flat ? (rewards[0] as number) : exactSum(rewards) / n;
  if (n === 1) return { mean, std: null, degenerate: true, advantages: [rule.lone === 'reward' ? mean : 0] };
  const squares = exactSum(rewards.map((r) => (r - mean) ** 2));
  const std = flat ? 0 : Math.sqrt(squares / (rule.sample ? n - 1 : n));
  return {
    mean,
    std,
    degenerate: std === 0,
    advantages: rewards.map((r) => (flat ? 0 : (r - mean) / (std + rule.eps))),
  };
}

/** Neumaier's compensated sum: the figures do not depend on the members' order. */
function exactSum(values: readonly number[]): number {
  let sum = 0;
  let lost = 0;
  for (const x of values) {
    const next = sum + x;
    lost += Math.abs(sum) >= Math.abs(x) ? sum - next + x : x - next + sum;
    sum = next;
  }
  return sum + lost;
}

export interface RunIdentity {
  run: string;
  /** Drawn once when the run was first opened; cursors carry it. */
  incarnation: string;
  convention: Convention;
  /** Of shards from before cursors had marks. */
  unmarked?: boolean;
}

/**
 * The number of the group that refills this one, null for none: only answers that were all worth the same call for others. A
 * group that lost its members to something else, or to the end of its run, would not be helped.
 */
export function refillOf(closed: ClosedGroup): number | null {
  if (closed.spare === undefined || closed.closed_by === 'cancelled') return null;
  const rewards = rewardsOf(closed);
  return rewards.length > 1 && rewards.every((r) => r === rewards[0]) ? closed.spare : null;
}

function rewardsOf({ members }: ClosedGroup): number[] {
  return members.flatMap((m) => (m.status === 'completed' ? [m.reward] : []));
}

/** The record of one closed group, the same from Redis and from the store. */
export function renderGroup(identity: RunIdentity, closed: ClosedGroup): GroupRecord {
  const figures = groupFigures(rewardsOf(closed), identity.convention);
  const refill = refillOf(closed);
  let next = 0;
  const members = closed.members.map((m: Member) => {
    if (m.status !== 'completed') return m;
    const { member, status, reward, components, ...rest } = m;
    return { member, status, reward, components, advantage: figures.advantages[next++] as number, ...rest };
  });
  return {
    cursor: formatCursor(identity.incarnation, closed.seq, identity.unmarked ? null : markOf(closed)),
    run: identity.run,
    group: closed.group,
    task_id: closed.task_id,
    policy_version: null,
    closed_by: closed.closed_by,
    mean: figures.mean,
    std: figures.std,
    degenerate: figures.degenerate,
    ...(refill === null ? {} : { refilled_by: refill }),
    members,
  };
}

/**
 * Opaque outside: the run's incarnation, a mark of what the group holds, and the dense number of the closed group. A Redis
 * that loses what it acknowledged closes groups anew under numbers that a trainer has seen: the mark tells them apart.
 */
export function formatCursor(incarnation: string, seq: number, mark: string | null): string {
  return mark === null ? `${incarnation}-${seq}` : `${incarnation}.${mark}-${seq}`;
}

/** `seq` and mark of a cursor of this incarnation, or null if it is not one. */
export function parseCursor(incarnation: string, cursor: string): { seq: number; mark: string | null } | null {
  const match = /^([0-9a-f]+)(?:\.([0-9a-f]{8}))?-(0|[1-9]\d{0,14})$/.exec(cursor);
  return match && match[1] === incarnation ? { seq: Number(match[3]), mark: match[2] ?? null } : null;
}

function markOf({ group, task_id, closed_by, members }: ClosedGroup): string {
  return sha256(JSON.stringify([group, task_id, closed_by, members])).slice(0, 8);
}
