// A role of the farm as a process runs it: started once, drained when asked, stopped when that takes too long.

import type { Config } from '../shared/config.ts';
import type { Slots } from '../shared/lane.ts';
import type { Log } from '../shared/log.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { RedisPlace } from '../shared/redis/connect.ts';

export interface RoleContext {
  config: Config;
  redis: Redis;
  place: RedisPlace;
  farmId: string;
  realm: string;
  /** Incarnation of this process: on its containers' labels and its members' leases. */
  worker: string;
  /** What it works on at once, by lane. */
  slots: Slots;
  log: Log;
}

export interface Role {
  /** Takes nothing new; resolves when what is at work is over. */
  drain(): Promise<void>;
  /** Gives back what is at work, at no cost to it, and leaves nothing behind. */
  stop(): Promise<void>;
}
