// Asks a platform for the whole fleet: every process with an asker for the same upstream shares one cache, one flight a
// query, one waiting list, one rate limit and one breaker in Redis. Whoever has a slot makes the next call, whoever's
// queries it holds. A query's answer comes from the cache, from this process's call, or by message from another's.
// Nothing throws: every query gets an answer, by its own deadline.

import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../shared/errors.ts';
import { fingerprint } from '../../../shared/ledger/run-settings.ts';
import { processIdentity } from '../../../shared/process-identity.ts';
import type { Redis } from '../../../shared/redis/client.ts';
import type { RedisPlace } from '../../../shared/redis/connect.ts';
import { cacheKey } from '../cache-key.ts';
import type { Answer } from '../client.ts';
import type { Platform } from '../platform-call.ts';
import type { Query } from '../wire-request.ts';
import { CallDesk } from './call-desk.ts';
import { type FleetLog, logEvent, spoken } from './coded.ts';
import { Exchange, type ExchangeLimits } from './exchange.ts';
import type { Coded, ExchangeReply } from './exchange-reply.ts';
import { readAnswer } from './flight-text.ts';
import { Heartbeat } from './heartbeat.ts';
import { Joiner } from './joiner.ts';
import { Mailbox } from './mailbox.ts';
import { Seal } from './seal.ts';
import { flightKey, shownUrl, upstreamId } from './upstream.ts';
import { type FleetAnswer, type Tell, type Wait, type WaitGroup, Waits } from './waits.ts';

export interface AskOptions {
  /** Answers are shared within it: `RUN:INCARNATION` for a run, the config document's hash for `score` and the gateway. */
  epoch: string;
  /** Look for a kept answer, and keep this one. Equal queries under way are asked once in any case. */
  cache: boolean;
  /** How long an answer is kept. Default 24 h. */
  ttlMs?: number;
  /** From now; null to wait as long as it takes. */
  deadlineMs: number | null;
  signal?: AbortSignal;
  /** Distinct queries that may be asked in this epoch; null for no bound. */
  budget?: number | null;
}

export interface FleetAskerOptions {
  /** For scripts; must ride through restarts (openRedis does). */
  redis: Redis;
  /** Where to open the connection for messages. */
  place: RedisPlace;
  upstream: Platform;
  limits: ExchangeLimits;
  log: FleetLog;
  random?: () => number;
  /** ms since 1970, for `Retry-After` dates. */
  now?: () => number;
}

const DAY_MS = 24 * 3_600_000;
const LEAVE_MS = 1_000;

export class FleetAsker {
  private readonly options: FleetAskerOptions;
  private readonly id: string;
  private readonly seal: Seal;
  private readonly exchange: Exchange;
  private readonly desk: CallDesk;
  private readonly mailbox: Mailbox;
  private readonly heartbeat: Heartbeat;
  private readonly waits = new Waits();
  private readonly joiner: Joiner;
  private closed = false;
  private wake: { timer: NodeJS.Timeout; at: number } | null = null;

  constructor(options: FleetAskerOptions) {
    this.options = options;
    const { redis, place, upstream, limits } = options;
    this.id = upstreamId(upstream);
    const process = `${processIdentity()}-${randomBytes(4).toString('hex')}`;
    this.seal = new Seal(upstream.apiKey, this.id);
    const key = fingerprint(upstream.apiKey) as string;
    this.exchange = new Exchange(
      redis,
      { upstream: this.id, process, platform: String(upstream.platformId), key },
      limits,
    );
    this.desk = new CallDesk({
      platform: upstream,
      exchange: this.exchange,
      seal: this.seal,
      limits,
      random: options.random ?? Math.random,
      now: options.now ?? (() => performance.timeOrigin + performance.now()),
      log: options.log,
      queryOf: (flight) => this.waits.get(flight)?.query,
      leftMs: (flight) => this.waits.leftMs(flight),
      onAnswer: (flight, answer) => this.answer(flight, answer, false),
      onReply: (reply) => this.handle(reply),
      onDone: () => this.rest(),
    });
    this.mailbox = new Mailbox(
      place,
      process,
      (flight, coded) => this.onMail(flight, coded),
      () => void this.heartbeat.beat(0),
    );
    this.heartbeat = new Heartbeat({
      redis,
      exchange: this.exchange,
      calls: () => this.desk.tokens,
      abandonMs: () => this.desk.abandonMs,
      onAbandoned: (token) => this.desk.abandon(token),
      waiting: (olderThanMs) => this.waits.olderThan(olderThanMs),
      onLook: (flight, coded) => this.onLook(flight, coded),
      onReply: (reply) => this.handle(reply),
    });
    this.joiner = new Joiner({
      exchange: this.exchange,
      seal: this.seal,
      waits: this.waits,
      shown: shownUrl(upstream.baseUrl),
      log: options.log,
      ready: () => {
        this.heartbeat.start();
        return this.mailbox.ready;
      },
      onReply: (reply) => this.handle(reply),
      onCoded: (wait, coded) => this.onCoded(wait.key, coded, true),
    });
  }

  /** One answer a query, in order. */
  ask(queries: readonly Query[], options: AskOptions): Promise<FleetAnswer[]> {
    if (this.closed || options.signal?.aborted) return Promise.resolve(queries.map(() => gone('stopped')));
    const group: WaitGroup = {
      epoch: options.epoch,
      cache: options.cache,
      ttlMs: options.ttlMs ?? DAY_MS,
      budget: options.budget ?? null,
    };
    const open: [Wait, Tell][] = [];
    const dueAt = options.deadlineMs === null ? Number.POSITIVE_INFINITY : performance.now() + options.deadlineMs;
    const answers = queries.map(
      (query) =>
        new Promise<FleetAnswer>((tell) => {
          const wait = this.waitFor(query, group);
          wait.told.add(tell);
          wait.dueAt = Math.min(wait.dueAt, dueAt);
          open.push([wait, tell]);
        }),
    );
    const giveUp = (why: string): void => void this.giveUp(open, why);
    const stop = (): void => giveUp('stopped');
    const timer =
      options.deadlineMs === null
        ? null
        : setTimeout(() => giveUp('no answer by the deadline'), Math.max(0, options.deadlineMs));
    options.signal?.addEventListener('abort', stop, { once: true });
    return Promise.all(answers).finally(() => {
      if (timer) clearTimeout(timer);
      options.signal?.removeEventListener('abort', stop);
    });
  }

  /** Takes no more calls, answers whoever still waits with `stopped`, gives calls at work their time, and gives back the rest. */
  async close(graceMs = 0): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.exchange.closing = true;
    this.joiner.close();
    if (this.wake) clearTimeout(this.wake.timer);
    // A Redis that is away must not hold up the end of a process: what it does not hear of, leases tell it.
    const patience = new AbortController();
    const left = Promise.race([
      this.giveUp(this.waits.open(), 'stopped'),
      delay(LEAVE_MS, undefined, { signal: patience.signal }).catch(() => undefined),
    ]);
    await Promise.all([left, this.desk.close(graceMs)]);
    patience.abort();
    this.heartbeat.stop();
    this.mailbox.close();
  }

  private waitFor(query: Query, group: WaitGroup): Wait {
    const { platformId } = this.options.upstream;
    const key = flightKey(this.id, group.epoch, cacheKey(platformId, query));
    const under = this.waits.get(key);
    if (under) {
      this.joiner.joined++;
      return under;
    }
    const wait = this.waits.add(key, query, group);
    this.joiner.send(wait);
    return wait;
  }

  private onMail(flight: string, coded: Coded): void {
    if (coded.code === 'k') this.take();
    else if (coded.code === 'r') this.desk.giveBackAhead();
    else this.onCoded(flight, coded, false);
  }

  /** What a look into Redis found, for what has been waiting long. */
  private onLook(flight: string, coded: Coded): void {
    const wait = this.waits.get(flight);
    if (wait?.state !== 'joined') return;
    if (coded.code !== 'n') {
      wait.missing = false;
      this.onCoded(flight, coded, false);
    } else if (wait.missing) this.joiner.send(wait);
    // Its message may be on its way.
    else wait.missing = true;
  }

  private onCoded(flight: string, { code, value }: Coded, cached: boolean): void {
    if (code === 'w' || code === 'f') return;
    this.answer(
      flight,
      code === 'v' ? this.readSealed(flight, value) : spoken(code, value.toString()),
      cached && code === 'v',
    );
  }

  private readSealed(flight: string, value: Buffer): Answer {
    const text = this.seal.open(value, flight);
    return (
      (text === null ? null : readAnswer(text)) ?? { kind: 'unavailable', detail: 'the kept answer cannot be read' }
    );
  }

  private answer(flight: string, answer: Answer, cached: boolean): void {
    this.waits.answer(flight, { ...answer, cached });
    this.rest();
  }

  private async giveUp(open: readonly [Wait, Tell][], why: string): Promise<void> {
    const keys = this.waits.giveUp(open, gone(why));
    if (keys.length > 0) {
      try {
        this.handle(await this.exchange.leave(keys));
      } catch (error) {
        this.options.log.debug({ error: messageOf(error) }, 'could not leave');
      }
      for (const wait of this.waits.left(keys)) this.joiner.send(wait);
    }
    this.rest();
  }

  private handle(reply: ExchangeReply): void {
    for (const [event, detail] of reply.events) {
      const { upstream, log } = this.options;
      logEvent(log, event, { upstream: shownUrl(upstream.baseUrl), platform: String(upstream.platformId), detail });
    }
    for (const call of reply.calls) {
      for (const { key } of call.items) this.waits.taken(key);
      this.desk.make(call);
    }
    if (reply.wakeMs >= 0 && !this.closed) this.wakeIn(reply.wakeMs);
    this.rest();
  }

  private wakeIn(ms: number): void {
    const at = performance.now() + ms;
    if (this.wake !== null && this.wake.at <= at) return;
    if (this.wake !== null) clearTimeout(this.wake.timer);
    const timer = setTimeout(() => {
      this.wake = null;
      this.take();
    }, ms);
    this.wake = { timer, at };
  }

  private take(): void {
    if (this.closed || (this.waits.size === 0 && this.desk.count === 0)) return;
    this.exchange.take().then(
      (reply) => this.handle(reply),
      (error) => this.options.log.debug({ error: messageOf(error) }, 'could not take'),
    );
  }

  private rest(): void {
    if (this.waits.size > 0 || this.desk.count > 0) return;
    this.heartbeat.stop();
    if (this.wake !== null) clearTimeout(this.wake.timer);
    this.wake = null;
  }
}

function gone(why: string): FleetAnswer {
  return { kind: 'unavailable', detail: why, cached: false };
}
