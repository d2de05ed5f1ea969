// The fleet's shared state as a process sees it: the scripts, their options and what they answer. Every answer may
// bring calls to make; a message may bring answers that other processes got.

import type { Redis } from 'ioredis';
import { loadScript } from '../../../shared/redis/script.ts';
import { BATCH, FLEET_KEY } from './upstream.ts';

const LONGEST_PAUSE_MS = 300_000;
const NOTHING = Buffer.alloc(0);
const FOLDER = new URL('.', import.meta.url);
// What frees or ends something must run on a full Redis; so must a join, whose flights are bounded by those who wait.
const JOIN = loadScript(FOLDER, 'join', { allowOom: true });
const TAKE = loadScript(FOLDER, 'take', { allowOom: true });
const SETTLE = loadScript(FOLDER, 'settle', { allowOom: true });
const TELL = loadScript(FOLDER, 'tell', { allowOom: true });
const LEAVE = loadScript(FOLDER, 'leave', { allowOom: true });
const BEAT = loadScript(FOLDER, 'beat', { allowOom: true });

export interface TakenItem {
  key: string;
  /** Sealed; empty where this process waits for it too, and has the query. */
  sealed: Buffer;
  tries: number;
  waitedMs: number;
}

export interface TakenCall {
  token: string;
  generation: number;
  single: boolean;
  items: TakenItem[];
}

/** What a script answers for a key; the codes stand in common.lua. */
export interface Coded {
  code: string;
  value: Buffer;
}

export interface ExchangeReply {
  wakeMs: number;
  events: [string, string][];
  calls: TakenCall[];
  /** For each key that was asked about. */
  own: Coded[];
  /** Other processes that hold permits, where that was asked. */
  processes: string[];
}

export interface ExchangeLimits {
  concurrency: number;
  requestsPerSecond?: number;
  /** Hard end of a call. Default 60 s. */
  callTimeoutMs?: number;
  /** Tries of one query against a failing infrastructure. Default 5. */
  tries?: number;
  /** Rest before a second try, doubled for each after it, at most 8 s. Default 500 ms. */
  backoffMs?: number;
  /** How long a query may wait for rate limits, all together. Default 120 s. */
  patienceMs?: number;
  /** How long a query waits for company. Default 3 ms. */
  windowMs?: number;
  /** Failed calls in a row that open the breaker, and how long it then stays open. Default 5 and 30 s. */
  breakerThreshold?: number;
  breakerCooldownMs?: number;
  /** How long a refusal of key or platform is believed. Default 30 s. */
  refusalMs?: number;
  /** A process that is not heard of for so long is taken for dead. Default 10 s. */
  leaseMs?: number;
  /** Bound of the cache, all upstreams together. Default 64 MB. */
  cacheBytes?: number;
}

export class Exchange {
  /** Redis is nearly full: keep nothing, shed what is kept. */
  full = false;
  /** Takes no calls any more. */
  closing = false;
  private readonly redis: Redis;
  private readonly standing: Record<string, unknown>;
  private readonly calls: number;
  private readonly process: string;
  private turn = 0;

  constructor(
    redis: Redis,
    identity: { upstream: string; process: string; platform: string; key: string },
    l: ExchangeLimits,
  ) {
    this.redis = redis;
    this.process = identity.process;
    const concurrency = Math.max(1, Math.floor(l.concurrency));
    this.calls = Math.min(concurrency, 16);
    this.standing = {
      up: identity.upstream,
      me: identity.process,
      platform: identity.platform,
      key: identity.key,
      concurrency,
      spacing: l.requestsPerSecond ? 1000 / l.requestsPerSecond : 0,
      window: l.windowMs ?? 3,
      batch: BATCH,
      bytes: 4 * 1024 * 1024,
      // Longer than a call can last, so that a slot is never given twice.
      permit: (l.callTimeoutMs ?? 60_000) + 10_000,
      lease: l.leaseMs ?? 10_000,
      grace: 3_000,
      lost: 3_000,
      tries: l.tries ?? 5,
      // Processes that may die with a query: together, in a part, then alone.
      deaths: 7,
      // No platform may have the fleet wait longer than this.
      longest: LONGEST_PAUSE_MS,
      patience: l.patienceMs ?? 120_000,
      threshold: l.breakerThreshold ?? 5,
      cooldown: l.breakerCooldownMs ?? 30_000,
      refusal: l.refusalMs ?? 30_000,
      // What was learned of batches is tried anew after this.
      memory: 600_000,
      room: l.cacheBytes ?? 64 * 1024 * 1024,
    };
  }

  join(
    options: {
      epoch: string;
      cache: boolean;
      ttlMs: number;
      budget: number | null;
      joined: number;
      now: boolean;
      shown: string;
    },
    wanted: readonly { key: string; sealed: Buffer | null }[],
  ): Promise<ExchangeReply> {
    const { epoch, cache, ttlMs, budget, joined, now } = options;
    const args = wanted.flatMap((one) => [one.key, one.sealed ?? '']);
    const own = { epoch, cache, ttl: cache ? ttlMs : 0, budget: budget ?? -1, joined, now };
    return this.run(JOIN, own, [options.shown, ...args]);
  }

  take(): Promise<ExchangeReply> {
    return this.run(TAKE, {}, []);
  }

  settle(
    call: TakenCall,
    said: { outcome: string; why: string; pauseMs: number; halved: number; restored: boolean; single: boolean },
    items: readonly { key: string; code: string; value: Buffer | string; number: number }[],
  ): Promise<ExchangeReply> {
    const { outcome, why, pauseMs, halved, restored, single } = said;
    const own = { settled: call.token, gen: call.generation, outcome, pause: pauseMs, halved, restored, single };
    return this.run(SETTLE, own, [why, ...items.flatMap((i) => [i.key, i.code, i.value, i.number])]);
  }

  tell(queries: readonly { key: string; sealed: Buffer }[]): Promise<ExchangeReply> {
    return this.run(
      TELL,
      {},
      queries.flatMap((one) => [one.key, one.sealed]),
    );
  }

  leave(keys: readonly string[]): Promise<ExchangeReply> {
    return this.run(LEAVE, {}, keys);
  }

  beat(mine: readonly string[], dead: readonly string[], keys: readonly string[]): Promise<ExchangeReply> {
    return this.run(BEAT, { mine, dead }, keys);
  }

  private async run(
    script: typeof JOIN,
    own: Record<string, unknown>,
    args: readonly (string | number | Buffer)[],
  ): Promise<ExchangeReply> {
    this.turn++;
    const options = {
      ...this.standing,
      full: this.full,
      calls: this.closing ? 0 : this.calls,
      token: `${this.process}.${this.turn.toString(36)}`,
      now: false,
      ...own,
    };
    return readReply(await script.callBuffer(this.redis, FLEET_KEY, [JSON.stringify(options), ...args]));
  }
}

/** Codes that come with a value. */
const VALUED = 'vuxmoh';

type RawCall = [token: Buffer, generation: Buffer, single: Buffer, items: Buffer, queries: Buffer[]];
type Raw = [Buffer, [Buffer, Buffer][], RawCall[], Buffer, Buffer[], Buffer[]];

function readReply(answer: unknown): ExchangeReply {
  const [wake, events, calls, codes, values, processes] = answer as Raw;
  let at = 0;
  return {
    wakeMs: Number(wake.toString()),
    events: events.map(([name, detail]) => [name.toString(), detail.toString()]),
    calls: calls.map(readCall),
    own: [...codes.toString()].map((code) => ({
      code,
      value: VALUED.includes(code) ? (values[at++] as Buffer) : NOTHING,
    })),
    processes: processes.map(String),
  };
}

function readCall([token, generation, single, items, queries]: RawCall): TakenCall {
  const words = items.toString().split(' ');
  return {
    token: token.toString(),
    generation: Number(generation.toString()),
    single: single.toString() === '1',
    items: Array.from({ length: words.length / 3 }, (_, i) => ({
      key: words[3 * i] as string,
      sealed: queries[i] ?? NOTHING,
      tries: Number(words[3 * i + 1]),
      waitedMs: Number(words[3 * i + 2]),
    })),
  };
}
