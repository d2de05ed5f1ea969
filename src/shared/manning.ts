// Who can play a run: live workers with slots in each lane in which its members wait, of those that may touch it.

import { laneOf, type MemberLane } from './lane.ts';
import type { Present } from './presence.ts';
import type { TaskSource } from './spec/source.ts';

/** Where the run's members wait for slots. */
export function lanesOf({ environments, verified }: Pick<TaskSource, 'environments' | 'verified'>): Set<MemberLane> {
  return new Set([...[...environments].map(laneOf), ...(verified > 0 ? (['verify'] as const) : [])]);
}

/** Those in which nobody has a slot. */
export function lanesWithout(workers: readonly Present[], lanes: Iterable<MemberLane>): MemberLane[] {
  return [...lanes].filter((lane) => !workers.some((one) => (one.slots[lane] ?? 0) > 0));
}

/** Workers that hold the AmberTrace key of this fingerprint; all, where none is needed. One of an older version does not tell. */
export function holding(workers: readonly Present[], key: string | null): Present[] {
  return workers.filter((one) => key === null || one.key === key);
}

/** A fingerprint as people see it, in the metrics too. */
export function shortKey(key: string | null | undefined): string {
  return key?.slice(0, 6) ?? 'none that they tell of';
}
