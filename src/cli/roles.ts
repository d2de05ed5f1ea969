// How many workers fit the machine: one rollout worker per engine is the unit of scale, its slots follow the cores.

import { availableParallelism } from 'node:os';
import type { RoleOrder } from './supervisor.ts';

const VERIFY_SLOTS = 64;

export function ordersFor(want: {
  realm: string;
  run: string | null;
  rollout: number | null;
  verify: number | null;
  verifies: boolean;
}): RoleOrder[] {
  const { realm, run } = want;
  const orders: RoleOrder[] = [{ role: 'rollout', realm, run, concurrency: want.rollout ?? rolloutSlots() }];
  if (want.verifies) orders.push({ role: 'verify', realm, run, concurrency: want.verify ?? VERIFY_SLOTS });
  orders.push({ role: 'collect', realm, run, concurrency: 1 });
  return orders;
}

export function rolloutSlots(): number {
  return Math.max(2, availableParallelism() * 2);
}
