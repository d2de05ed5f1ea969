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

/** Keys, as people see them, of workers that have slots which nobody has with the wanted key; none where none is needed. */
export function otherKeys(workers: readonly Present[], unmanned: readonly MemberLane[], key: string | null): string[] {
  if (key === null) return [];
  const others = workers.filter((one) => one.key !== key && lanesWithout([one], unmanned).length < unmanned.length);
  return [...new Set(others.map((one) => shortKey(one.key)))].sort();
}

/** A fingerprint as people see it, in the metrics too. */
export function shortKey(key: string | null | undefined): string {
  return key?.slice(0, 6) ?? 'none that they tell of';
}
