// While this process waits or calls: once a second it renews its lease, looks up what has been waiting long, has the
// calls of dead processes given back and its own that hang for nobody broken off, and sees whether Redis is filling up.

import { isKnownDead } from '../../../shared/process-identity.ts';
import type { Redis } from '../../../shared/redis/client.ts';
import { readMemory } from '../../../shared/redis/memory.ts';
import type { Exchange } from './exchange.ts';
import type { Coded, ExchangeReply } from './exchange-reply.ts';

export interface HeartbeatOptions {
  redis: Redis;
  exchange: Exchange;
  /** Tokens of the calls that are made here. */
  calls(): string[];
  /** After so long, ms, a call that nobody waits for is broken off. */
  abandonMs(): number;
  onAbandoned(token: string): void;
  /** Flights that have been waiting for so long. */
  waiting(olderThanMs: number): string[];
  onLook(flight: string, coded: Coded): void;
  onReply(reply: ExchangeReply): void;
}

const EVERY_MS = 1_000;
const LOOK_AFTER_MS = 900;
/** Flights looked up in one script call. */
const CHUNK = 1_000;
/** The cache goes before producers stop (they do at 0.6). */
const HIGH_WATER = 0.55;

export class Heartbeat {
  private readonly options: HeartbeatOptions;
  private timer: NodeJS.Timeout | null = null;
  private holders: string[] = [];
  private beating = false;

  constructor(options: HeartbeatOptions) {
    this.options = options;
  }

  start(): void {
    if (this.timer === null) this.timer = setInterval(() => void this.beat(LOOK_AFTER_MS), EVERY_MS);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }

  async beat(lookAfterMs: number): Promise<void> {
    if (this.beating) return;
    this.beating = true;
    try {
      const keys = this.options.waiting(lookAfterMs);
      const dead = this.holders.filter((holder) => isKnownDead(holder.slice(0, holder.lastIndexOf('-'))));
      for (let i = 0; i === 0 || i < keys.length; i += CHUNK) {
        const part = keys.slice(i, i + CHUNK);
        const own = { mine: this.options.calls(), dead, abandon: this.options.abandonMs() };
        const reply = await this.options.exchange.beat(own, part);
        for (const token of reply.abandoned) this.options.onAbandoned(token);
        for (const [at, key] of part.entries()) this.options.onLook(key, reply.own[at] as Coded);
        this.holders = reply.names;
        this.options.onReply(reply);
      }
      await this.look();
    } catch {
      // Redis is away; the next beat tells.
    } finally {
      this.beating = false;
    }
  }

  private async look(): Promise<void> {
    const { usedBytes, maxBytes } = await readMemory(this.options.redis);
    this.options.exchange.full = maxBytes > 0 && usedBytes > HIGH_WATER * maxBytes;
  }
}
