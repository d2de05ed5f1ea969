// Makes the calls that this process has taken, for whomever: reads the queries, calls, answers those who wait here at
// once, and settles with Redis, which answers the others and brings the next calls.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../shared/errors.ts';
import { detailOf } from '../../../shared/outcome.ts';
import type { Answer } from '../client.ts';
import { type Platform, PlatformCaller } from '../platform-call.ts';
import type { Query } from '../wire-request.ts';
import type { FleetLog } from './coded.ts';
import type { Exchange, ExchangeLimits, ExchangeReply, TakenCall, TakenItem } from './exchange.ts';
import { readQuery, writeAnswer } from './flight-text.ts';
import type { Seal } from './seal.ts';
import { type Fate, givenBack, type Settlement, settlementOf } from './settlement.ts';

export interface CallDeskOptions {
  platform: Platform;
  exchange: Exchange;
  seal: Seal;
  limits: ExchangeLimits;
  random: () => number;
  now: () => number;
  log: FleetLog;
  queryOf(flight: string): Query | undefined;
  onAnswer(flight: string, answer: Answer): void;
  onReply(reply: ExchangeReply): void;
  /** A call made here is over. */
  onDone(): void;
}

interface Coding {
  key: string;
  code: string;
  value: Buffer | string;
  number: number;
}

const SETTLE_TRIES = 20;
const SETTLE_RETRY_MS = 500;

export class CallDesk {
  private readonly options: CallDeskOptions;
  private readonly caller: PlatformCaller;
  private readonly abort = new AbortController();
  private readonly under = new Map<string, Promise<void>>();
  private turn: Promise<void> = Promise.resolve();

  constructor(options: CallDeskOptions) {
    this.options = options;
    this.caller = new PlatformCaller(options.platform);
  }

  get tokens(): string[] {
    return [...this.under.keys()];
  }

  get count(): number {
    return this.under.size;
  }

  make(call: TakenCall): void {
    const done = this.serve(call).finally(() => {
      this.under.delete(call.token);
      this.options.onDone();
    });
    this.under.set(call.token, done);
  }

  async close(graceMs: number): Promise<void> {
    const all = Promise.all(this.under.values());
    const grace = new AbortController();
    await Promise.race([all, delay(graceMs, undefined, { signal: grace.signal }).catch(() => undefined)]);
    grace.abort();
    this.abort.abort();
    // A Redis that is away must not hold up the end of a process: what it does not hear of, its leases tell.
    const patience = new AbortController();
    await Promise.race([
      Promise.all(this.under.values()),
      delay(2_000, undefined, { signal: patience.signal }).catch(() => undefined),
    ]);
    patience.abort();
    this.caller.close();
  }

  private async serve(call: TakenCall): Promise<void> {
    const settlement = await this.ask(call);
    const codings: Coding[] = [];
    for (const [i, item] of call.items.entries()) {
      const fate = settlement.fates[i] as Fate;
      if (fate.kind === 'answered') this.options.onAnswer(item.key, fate.answer);
    }
    await this.myTurn();
    for (const [i, item] of call.items.entries()) codings.push(this.coding(item, settlement.fates[i] as Fate));
    for (let turn = 1; turn <= SETTLE_TRIES; turn++) {
      try {
        this.options.onReply(await this.options.exchange.settle(call, settlement, codings));
        return;
      } catch (error) {
        if (this.abort.signal.aborted) return;
        // A Redis that is away comes back; one that refuses what it is told, or never came, must be seen.
        const refused = error instanceof Error && error.name === 'ReplyError';
        if ((refused && turn === 1) || turn === SETTLE_TRIES) this.warn(call, messageOf(error), turn);
        await delay(SETTLE_RETRY_MS, undefined, { signal: this.abort.signal }).catch(() => undefined);
      }
    }
  }

  private warn(call: TakenCall, detail: string, turn: number): void {
    const line = turn < SETTLE_TRIES ? 'a call could not be settled: tried again' : 'a call could not be settled';
    this.options.log.warn({ call: call.token, queries: call.items.length, detail }, line);
  }

  /** Those who wait here go first: answers that have arrived are read before the next call is settled, which is for others. */
  private myTurn(): Promise<void> {
    this.turn = this.turn.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.turn;
  }

  /** Never throws: a fault of ours is no answer of the platform. */
  private async ask(call: TakenCall): Promise<Settlement> {
    const { limits, random, now } = this.options;
    try {
      const queries = call.items.map((item) => this.queryOf(item));
      const result = await this.caller.call(queries, call.single, {
        timeoutMs: limits.callTimeoutMs ?? 60_000,
        now: now(),
        signal: this.abort.signal,
      });
      if (this.abort.signal.aborted && result.whole === 'infrastructure') return givenBack(call.items);
      return settlementOf(result, call.items, {
        tries: limits.tries ?? 5,
        patienceMs: limits.patienceMs ?? 120_000,
        backoffMs: limits.backoffMs ?? 500,
        random,
      });
    } catch (error) {
      const detail = detailOf(`this process could not ask: ${messageOf(error)}`);
      const answer: Answer = { kind: 'unavailable', detail };
      return { ...givenBack(call.items), fates: call.items.map(() => ({ kind: 'answered', answer })) };
    }
  }

  /** An answer that cannot be written is still one for those who wait here; the others ask again. */
  private kept(key: string, answer: Extract<Answer, { kind: 'verdict' | 'denial' }>): Coding {
    try {
      return { key, code: 'v', value: this.options.seal.close(writeAnswer(answer), key), number: 1 };
    } catch (error) {
      return { key, code: 'u', value: detailOf(`an answer that cannot be kept: ${messageOf(error)}`), number: 0 };
    }
  }

  private queryOf(item: TakenItem): Query {
    const here = this.options.queryOf(item.key);
    if (here) return here;
    const text = this.options.seal.open(item.sealed, item.key);
    if (text === null) throw new Error('a query that cannot be read');
    return readQuery(text);
  }

  private coding({ key }: TakenItem, fate: Fate): Coding {
    switch (fate.kind) {
      case 'again':
        return {
          key,
          code: 'a',
          value: `${fate.tries} ${Math.round(fate.waitedMs)} ${fate.company}`,
          number: fate.delayMs,
        };
      case 'lost':
        return { key, code: 'l', value: fate.detail, number: 0 };
      case 'answered': {
        const { answer } = fate;
        switch (answer.kind) {
          case 'verdict':
          case 'denial':
            return this.kept(key, answer);
          case 'unreadable':
            return { key, code: 'x', value: answer.detail, number: 0 };
          case 'misconfigured':
            return { key, code: 'm', value: answer.detail, number: 0 };
          default:
            return { key, code: 'u', value: answer.detail, number: 0 };
        }
      }
    }
  }
}
