// Leave to start boxes on one engine, shared by all processes that use it through one Redis: how many start at once, and
// how much memory all boxes together may take. What a process holds is leased and told anew with every call; a process that
// is dead holds nothing once its lease has ended.

import type { Redis } from '../redis/client.ts';
import { loadScript } from '../redis/script.ts';

const FOLDER = new URL('.', import.meta.url);
const SCRIPTS = {
  claim: loadScript(FOLDER, 'claim', { allowOom: true }),
  leave: loadScript(FOLDER, 'leave', { allowOom: true }),
};

export interface PermitBounds {
  startsAtOnce: number;
  /** Of all boxes together. */
  memoryMb: number;
}

export interface Held {
  starting: number;
  memoryMb: number;
}

export interface ClaimAnswer {
  granted: boolean;
  /** Somebody waits for memory that boxes without work may hold. */
  pressed: boolean;
}

export interface PermitTimes {
  leaseMs: number;
  /** A wait that is not asked for again within this is over. */
  waitMs: number;
}

const TIMES: PermitTimes = { leaseMs: 20_000, waitMs: 1_500 };

export class EnginePermits {
  private readonly redis: Redis;
  private readonly key: string;
  private readonly owner: string;
  private readonly bounds: PermitBounds;
  private readonly times: PermitTimes;

  /** `owner`: incarnation of the process. */
  constructor(redis: Redis, engine: string, owner: string, bounds: PermitBounds, times: Partial<PermitTimes> = {}) {
    this.redis = redis;
    this.key = `farm:{engine:${engine}}`;
    this.owner = owner;
    this.bounds = bounds;
    this.times = { ...TIMES, ...times };
  }

  /** Says what this process holds; with `wantMb` asks for one start more. */
  async claim(held: Held, wantMb: number | null): Promise<ClaimAnswer> {
    const { bounds, times } = this;
    const told = [this.owner, held.starting, held.memoryMb, times.leaseMs];
    const asked = [bounds.startsAtOnce, bounds.memoryMb, wantMb ?? 0, times.waitMs];
    const answer = (await SCRIPTS.claim.call(this.redis, this.key, [...told, ...asked])) as [number, number];
    return { granted: answer[0] === 1, pressed: answer[1] === 1 };
  }

  async leave(): Promise<void> {
    await SCRIPTS.leave.call(this.redis, this.key, [this.owner]);
  }
}
