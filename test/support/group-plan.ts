// A plan that lies in memory, for drivers of tests: so many groups of one place in no store.

import type { Place } from '../../src/shared/plan/plan.ts';
import type { PlanIndex } from '../../src/shared/plan/plan-index.ts';

export function groupPlan(groups: number, place: Place): Pick<PlanIndex, 'length' | 'entries'> {
  const entries = Array.from({ length: groups }, (_, g) => ({ taskId: `t${g}`, place, lane: 'rollout' as const }));
  return { length: groups, entries: async (from, to) => entries.slice(from, to) };
}
