// Workers that hold members of a run and are not heard of: their leases run out, and then the members are others'. One wait
// a worker, about its first member.

import type { Redis } from '../redis/client.ts';
import { LEASE_MS } from './member-ledger.ts';

/** Two heartbeats and a half. */
const SILENT_MS = 2_500;
/** Members that are looked at: those whose leases run out first. */
const LOOKED_AT = 64;

export interface SilentWorker {
  member: string;
  phase: string;
  /** When it was heard of last, on Redis's clock. */
  sinceMs: number;
}

export async function readSilentWorkers(redis: Redis, key: string, nowMs: number): Promise<SilentWorker[]> {
  const till = nowMs + LEASE_MS - SILENT_MS;
  const ids = await redis.zrangebyscore(`${key}:live`, '-inf', till, 'LIMIT', 0, LOOKED_AT);
  const held = await Promise.all(
    ids.map(async (id) => {
      const [group, member] = id.split('-') as [string, string];
      const [worker, token, lease] = await redis.hmget(
        `${key}:g:${group}`,
        `${member}.w`,
        `${member}.t`,
        `${member}.l`,
      );
      // Heard of meanwhile, or queued and not begun.
      return worker && token && lease && Number(lease) <= till ? { id, worker, leaseMs: Number(lease) } : null;
    }),
  );
  const workers = new Map<string, { id: string; leaseMs: number; members: number }>();
  for (const one of held) {
    if (one === null) continue;
    const known = workers.get(one.worker);
    if (known) known.members++;
    else workers.set(one.worker, { id: one.id, leaseMs: one.leaseMs, members: 1 });
  }
  return [...workers].map(([worker, { id, leaseMs, members }]) => {
    const sinceMs = leaseMs - LEASE_MS;
    const silent = ((nowMs - sinceMs) / 1000).toFixed(1);
    const left = (Math.max(0, leaseMs - nowMs) / 1000).toFixed(1);
    return {
      member: id,
      sinceMs,
      phase: `worker ${worker} has not been heard of for ${silent} s: ${members === 1 ? 'this member is' : `its ${members} members are`} given to others in ${left} s`,
    };
  });
}
