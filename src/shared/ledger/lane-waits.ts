// What the members of a run wait for that no worker has begun: a place in the fleet's window, a slot, or a worker at
// all. One line a lane, about its next member.

import { liveSlots, runsInLane, windowNow } from '../fleet/fleet.ts';
import { MEMBER_LANES, type MemberLane } from '../lane.ts';
import type { Redis } from '../redis/client.ts';
import { runKey } from './script.ts';

export interface LaneWait {
  member: string;
  phase: string;
  /** When it began to wait, on Redis's clock; null where it was given back and not opened. */
  sinceMs: number | null;
}

/** `out`: the run's places by lane. `begun`: members that a worker has begun. */
export async function readLaneWaits(
  redis: Redis,
  run: string,
  realm: string,
  out: Readonly<Record<MemberLane, number>>,
  begun: number,
): Promise<LaneWait[]> {
  const key = runKey(run);
  const slots = await liveSlots(redis, realm);
  const waits: LaneWait[] = [];
  for (const lane of MEMBER_LANES) {
    const [next] = await first(redis, `${key}:due:${lane}`);
    const none = slots[lane] === 0 ? `waiting for a worker: none here has ${lane} slots` : null;
    if (next !== undefined) {
      const runs = (await runsInLane(redis, realm, lane)).length;
      const window = await windowNow(redis, realm, lane, slots[lane]);
      const share = `${window} for ${slots[lane]} slots, ${out[lane]} are this run's, runs that share them: ${runs}`;
      waits.push({ ...next, phase: none ?? `waiting for one of the fleet's ${lane} places (${share})` });
    } else if (out[lane] > 0 && begun === 0) {
      const [queued] = await first(redis, `${key}:live`);
      if (queued !== undefined)
        waits.push({
          member: queued.member,
          sinceMs: null,
          phase: none ?? `queued: waiting for one of ${slots[lane]} ${lane} slots`,
        });
    }
  }
  return waits;
}

async function first(redis: Redis, key: string): Promise<{ member: string; sinceMs: number | null }[]> {
  const [member, score] = ((await redis.call('ZRANGE', key, '0', '0', 'WITHSCORES')) as unknown[]).flat().map(String);
  if (member === undefined) return [];
  return [{ member, sinceMs: Number(score) > 0 ? Number(score) : null }];
}
