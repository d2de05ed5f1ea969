// The fleet's window: how many members of all runs of a realm may be queued or at work at once, about one and a half
// times the live slots of each lane, or what a quick lane plays in a moment, dealt to the runs in turns (deal.lua). A run's `in_flight` is a cap and no right: the
// rest of a sweep stays out of the queue, and a small run that comes later gets its share with the next places that
// fall free. What a run holds is leased: with its driver gone it is everybody's again.

import { type Lane, MEMBER_LANES, type MemberLane } from '../lane.ts';
import { runKey } from '../ledger/script.ts';
import { presentIn } from '../presence.ts';
import type { Redis } from '../redis/client.ts';
import { openRedis, type RedisPlace } from '../redis/connect.ts';
import { loadScript } from '../redis/script.ts';

const DEAL = loadScript(new URL('.', import.meta.url), 'deal', { allowOom: true });

/** Above the slots, so that a worker that is done with one finds the next already queued. */
const AHEAD = 1.5;
/** A light job carries several members: two such jobs wait, at least. */
const LIGHT_AHEAD = 16;
/** What light members of a lane that is quick end in so much time may wait ahead of the slots: a run that comes later waits no longer for it. */
const PACE_MS = 400;
/** And no more than so many for a slot. */
const LIGHT_MOST = 64;
/** Before any worker is there: enough for the first one to begin with. */
const FIRST = 8;
/** A driver asks ten times a second and more often. */
const LEASE_MS = 5_000;
const LOOK_MS = 1_000;
/** Nobody is there yet: whoever comes should not wait for our next look. */
const LOOK_AGAIN_MS = 100;

export interface Ask {
  lane: MemberLane;
  /** Members of the run that are queued or at work in this lane. */
  out: number;
  /** Members that it would put in besides. */
  want: number;
}

/** Members that may be queued or at work in a lane of so many live slots, however slow they are. */
export function windowOf(lane: MemberLane, slots: number): number {
  if (slots === 0) return FIRST;
  return Math.max(Math.ceil(AHEAD * slots), lane === 'light' ? slots + LIGHT_AHEAD : 0);
}

function mostOf(lane: MemberLane, slots: number): number {
  return lane === 'light' ? LIGHT_MOST * slots : 0;
}

export class Fleet {
  /** Light members that end in a second, all runs' together, as the last deal said. */
  lightPace = 0;
  private readonly redis: Redis;
  private readonly place: RedisPlace;
  private readonly realm: string;
  private readonly leaseMs: number;
  private readonly listeners = new Map<string, (lane: string, out: number | null) => void>();
  private ears: Redis | null = null;
  private slots: Record<Lane, number> = noSlots();
  private lookAt = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis, place: RedisPlace, realm: string, leaseMs = LEASE_MS) {
    this.redis = redis;
    this.place = place;
    this.realm = realm;
    this.leaseMs = leaseMs;
  }

  /** How many members of each lane the run may put into the queue now. */
  async deal(run: string, asks: readonly Ask[]): Promise<Record<MemberLane, number>> {
    await this.look();
    const args = asks.flatMap(({ lane, out, want }) => [
      lane,
      windowOf(lane, this.slots[lane]),
      mostOf(lane, this.slots[lane]),
      out,
      Math.max(0, want),
    ]);
    const head = [run, this.leaseMs, PACE_MS];
    const dealt = (await DEAL.call(this.redis, fleetKey(this.realm), [...head, ...args])) as number[];
    const places = { rollout: 0, light: 0, verify: 0 };
    for (const [i, { lane }] of asks.entries()) {
      places[lane] = dealt[2 * i] ?? 0;
      if (lane === 'light') this.lightPace = dealt[2 * i + 1] ?? 0;
    }
    return places;
  }

  /** Calls `wake` when places of the run have fallen free (`out` are left), or were dealt to it. */
  async listen(run: string, wake: (lane: string, out: number | null) => void): Promise<() => void> {
    if (this.ears === null) {
      this.ears = openRedis(this.place);
      this.ears.on('message', (channel: string, text: string) => {
        const [lane = '', out] = text.split(' ');
        this.listeners.get(channel)?.(lane, out === undefined ? null : Number(out));
      });
    }
    const channel = `${runKey(run)}:wake`;
    this.listeners.set(channel, wake);
    await this.ears.subscribe(channel);
    return () => {
      this.listeners.delete(channel);
      void this.ears?.unsubscribe(channel).catch(() => {});
    };
  }

  close(): void {
    this.ears?.disconnect();
    this.ears = null;
  }

  private async look(): Promise<void> {
    const now = performance.now();
    const any = MEMBER_LANES.some((lane) => this.slots[lane] > 0);
    if (now - this.lookAt < (any ? LOOK_MS : LOOK_AGAIN_MS)) return;
    this.lookAt = now;
    this.slots = await liveSlots(this.redis, this.realm);
  }
}

export async function liveSlots(redis: Redis, realm: string): Promise<Record<Lane, number>> {
  const slots = noSlots();
  for (const worker of await presentIn(redis, realm))
    for (const lane of Object.keys(slots) as Lane[]) slots[lane] += worker.slots[lane] ?? 0;
  return slots;
}

/** Runs that have members in a lane's window or wait for a place in it. */
export async function runsInLane(redis: Redis, realm: string, lane: MemberLane): Promise<string[]> {
  const names = await redis.hkeys(`${fleetKey(realm)}:${lane}`);
  return names.filter((name) => !name.startsWith('#')).sort();
}

/** The window as it is now, for people. */
export async function windowNow(redis: Redis, realm: string, lane: MemberLane, slots: number): Promise<number> {
  const paced = await redis.hget(`${fleetKey(realm)}:${lane}`, '#pace');
  const ahead = Math.floor((Number(paced?.split(' ')[0] ?? 0) * PACE_MS) / 1000);
  return Math.max(windowOf(lane, slots), Math.min(mostOf(lane, slots), ahead));
}

export function fleetKey(realm: string): string {
  return `farm:{fleet ${realm}}`;
}

function noSlots(): Record<Lane, number> {
  return { interactive: 0, rollout: 0, light: 0, verify: 0 };
}
