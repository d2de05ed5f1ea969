// The fleet's shared state as a process sees it: the scripts, their options and what they answer. Every answer may
// bring calls to make; a message may bring answers that other processes got.

import type { Redis } from '../../../shared/redis/client.ts';
import { type LuaScript, loadScript } from '../../../shared/redis/script.ts';
import { type ExchangeReply, readReply, type TakenCall, type TakenItem } from './exchange-reply.ts';
import { BATCH, FLEET_KEY } from './upstream.ts';

const LONGEST_PAUSE_MS = 300_000;
/** Calls that one script hands out. */
const CALLS = 64;
const FOLDER = new URL('.', import.meta.url);
// What frees or ends something must run on a full Redis; so must a join, whose flights are bounded by those who wait.
const PRELUDE = ['state', 'limits', 'processes', 'cache', 'flights', 'calls'];
const script = (name: string) => loadScript(FOLDER, name, { allowOom: true, prelude: PRELUDE });
const JOIN = script('join');
const TAKE = script('take');
const SETTLE = script('settle');
const HEDGE = script('hedge');
const TELL = script('tell');
const LEAVE = script('leave');
const BEAT = script('beat');

/** What becomes of a query: an answer, or a word on when it is asked again. */
export interface Coding {
  key: string;
  code: string;
  value: Buffer | string;
  number: number;
}

/** A call that is over. */
export interface Ended {
  call: TakenCall;
  /** The call's own token, or that of a part of it. */
  permit: string;
  /** Nothing of the call is out any more. */
  last: boolean;
  /** The call that has begun in its place. */
  heir: TakenCall | null;
  said: { outcome: string; why: string; pauseMs: number; halved: number; restored: boolean; single: boolean };
}

/** What this process has under way, and how many calls it may take before there are permits for them. */
export interface Load {
  under: number;
  held: number;
  most: number;
}

export interface ExchangeLimits {
  concurrency: number;
  /** Of the whole fleet. */
  requestsPerSecond?: number | null;
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
  /** A call of several queries that has not answered after so long at most is asked again in parts. Default 5 s. */
  hedgeMs?: number;
  /** ms since 1970 in place of Redis's own clock: for reference cases, whose time is scripted. */
  clock?: () => number;
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
  private readonly clock: (() => number) | undefined;
  private turn = 0;
  /** At the last answer. */
  waiting = 0;
  load: () => Load = () => ({ under: 0, held: 0, most: 0 });

  constructor(
    redis: Redis,
    identity: { upstream: string; process: string; platform: string; key: string },
    l: ExchangeLimits,
  ) {
    this.redis = redis;
    this.process = identity.process;
    const concurrency = Math.max(1, Math.floor(l.concurrency));
    this.calls = Math.min(concurrency, CALLS);
    this.clock = l.clock;
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

  settle(ended: readonly (Ended & { items: readonly Coding[] })[]): Promise<ExchangeReply> {
    const settled = ended.map(({ call, permit, last, heir, said, items }) => ({
      token: call.token,
      permit,
      last,
      ahead: call.ahead,
      ...(heir === null ? {} : { heir: heir.token, items: heir.items.length }),
      gen: call.generation,
      outcome: said.outcome,
      pause: said.pauseMs,
      halved: said.halved,
      restored: said.restored,
      single: said.single,
      n: items.length,
    }));
    const codings = ended.flatMap(({ items }) => items.flatMap((i) => [i.key, i.code, i.value, i.number]));
    return this.run(SETTLE, { settled }, [...ended.map(({ said }) => said.why), ...codings]);
  }

  /** Permits for asking a call's queries again in these parts: as many as there may be, as `names`. */
  hedge(hung: TakenCall, parts: readonly (readonly TakenItem[])[]): Promise<ExchangeReply> {
    const own = { hung: hung.token, items: parts.map((part) => part.length) };
    return this.run(
      HEDGE,
      own,
      parts.flatMap((part) => part.map((item) => item.key)),
    );
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

  beat(
    { mine, dead, abandon }: { mine: readonly string[]; dead: readonly string[]; abandon: number },
    keys: readonly string[],
  ): Promise<ExchangeReply> {
    return this.run(BEAT, { mine, dead, abandon }, keys);
  }

  private async run(
    script: LuaScript,
    own: Record<string, unknown>,
    args: readonly (string | number | Buffer)[],
  ): Promise<ExchangeReply> {
    this.turn++;
    const { under, held, most } = this.load();
    const options = {
      ...this.standing,
      ...(this.clock ? { clock: this.clock() } : {}),
      full: this.full,
      calls: this.closing ? 0 : this.calls,
      under,
      held,
      ahead: this.closing ? 0 : most,
      token: `${this.process}.${this.turn.toString(36)}`,
      now: false,
      ...own,
    };
    const reply = readReply(await script.callBuffer(this.redis, FLEET_KEY, [JSON.stringify(options), ...args]));
    this.waiting = reply.waiting;
    return reply;
  }
}
