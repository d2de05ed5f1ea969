// One line of a shard: a closed group rendered to the text that a trainer reads. The same text comes from the
// ledger and from the store, because both go through `renderLine`; a line is sound if rendering what it says
// gives the same bytes again, which recomputes every figure in it. Refuses members that are not well formed.

import { z } from 'zod';
import type { Claim } from '../claim.ts';
import { type ClosedGroup, checkClosedGroup, groupRecordSchema, type RunIdentity, renderGroup } from '../group.ts';
import type { Cause, Completed, Member } from '../outcome.ts';
import { causeSchema } from '../outcome.ts';

/** How many members there are, and what became of them. */
export const countsSchema = z.strictObject({
  groups: z.int().nonnegative(),
  members: z.int().nonnegative(),
  completed: z.int().nonnegative(),
  no_result: z.int().nonnegative(),
  by_cause: z.partialRecord(causeSchema, z.int().positive()),
});
export type Counts = z.infer<typeof countsSchema>;

/** The group's line without its newline, in one canonical form. Throws ZodError for a group that is not well formed. */
export function renderLine(identity: RunIdentity, closed: ClosedGroup): string {
  return JSON.stringify(renderGroup(identity, checkClosedGroup(closed)));
}

/** A line back to the closed group that it was rendered from. Never throws. */
export function readLine(text: string, seq: number): { cursor: string; closed: ClosedGroup } | { fault: string } {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return { fault: 'is not JSON' };
  }
  const parsed = groupRecordSchema.safeParse(data);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { fault: `is not a group record (${issue?.path.join('.') || 'root'}: ${issue?.message ?? 'unknown'})` };
  }
  const { cursor, group, task_id, closed_by, refilled_by } = parsed.data;
  const members = parsed.data.members.map((m): Member => {
    if (m.status !== 'completed') return m;
    const { advantage: _, ...member } = m;
    return member;
  });
  const spare = refilled_by === undefined ? {} : { spare: refilled_by };
  return { cursor, closed: { seq, group, task_id, closed_by, members, ...spare } };
}

/** The claims of a completed member. */
export function claimsOf(member: Completed): Claim[] {
  return member.report === undefined ? [member.trajectory] : [member.trajectory, member.report];
}

export function noCounts(): Counts {
  return { groups: 0, members: 0, completed: 0, no_result: 0, by_cause: {} };
}

/** Adds a group to `counts`. */
export function countGroup(counts: Counts, closed: ClosedGroup): void {
  counts.groups++;
  for (const member of closed.members) {
    counts.members++;
    if (member.status === 'completed') counts.completed++;
    else {
      counts.no_result++;
      counts.by_cause[member.cause] = (counts.by_cause[member.cause] ?? 0) + 1;
    }
  }
}

/** Sum of several counts, causes in alphabetical order. */
export function sumCounts(all: Iterable<Counts>): Counts {
  const sum = noCounts();
  const causes = new Map<Cause, number>();
  for (const c of all) {
    sum.groups += c.groups;
    sum.members += c.members;
    sum.completed += c.completed;
    sum.no_result += c.no_result;
    for (const [cause, n] of Object.entries(c.by_cause) as [Cause, number][])
      causes.set(cause, (causes.get(cause) ?? 0) + n);
  }
  sum.by_cause = Object.fromEntries([...causes].sort(([a], [b]) => (a < b ? -1 : 1)));
  return sum;
}
