// Asks a platform for many queries at once: batches of up to 50, several in flight, each query sent once, every
// query answered exactly once. Halves what is too big and falls back to single calls where there is no batch path;
// both are remembered. It retries what the infrastructure did, waits where the platform says wait (all of this
// client's calls together), and stops at once when the platform refuses key or platform. It never throws.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../shared/errors.ts';
import { detailOf } from '../../shared/outcome.ts';
import type { ValueMap } from '../../shared/value.ts';
import { CallFailed, HttpCaller } from './http-call.ts';
import type { Denial } from './report.ts';
import { itemMeanings, type Meaning, meaningOf } from './wire.ts';
import { batchBody, bodyText, type Query, singleBody } from './wire-request.ts';

export type Answer =
  | { kind: 'verdict'; data: ValueMap }
  | { kind: 'denial'; denial: Denial }
  /** Nothing was said about this query: no reward. */
  | { kind: 'unavailable'; detail: string }
  | { kind: 'misconfigured'; detail: string }
  /** Larger, alone, than the platform reads: the completion's own doing. */
  | { kind: 'unreadable'; detail: string };

export interface ClientOptions {
  baseUrl: string;
  platformId: bigint;
  apiKey: string;
  /** Calls in flight at once. */
  concurrency: number;
  callTimeoutMs?: number;
  /** Tries of one query against a failing infrastructure; waits for a rate limit do not count. Default 5. */
  tries?: number;
  /** How long one query may wait for rate limits, all together. Default 120 s. */
  patienceMs?: number;
  signal?: AbortSignal;
  sleep?: (ms: number) => Promise<void>;
  random?: () => number;
  now?: () => number;
  /** Told of each rate limit, so that a fleet can slow down together. */
  onRateLimit?: (waitMs: number) => void;
}

const BATCH = 50;
const BODY_BYTES = 16 * 1024 * 1024;
const BACKOFF_MS = 500;
const BACKOFF_MAX_MS = 8_000;

interface Waiting {
  index: number;
  query: Query;
  tries: number;
  waitedMs: number;
}

export class VerifierClient {
  private readonly options: ClientOptions;
  private readonly caller = new HttpCaller();
  private batchSize = BATCH;
  private singles = false;
  private refused: string | null = null;
  private pausedUntil = 0;

  constructor(options: ClientOptions) {
    this.options = options;
  }

  /** One answer for each query, in order. */
  async ask(queries: readonly Query[]): Promise<Answer[]> {
    const answers: Answer[] = new Array(queries.length);
    const waiting: Waiting[] = queries.map((query, index) => ({ index, query, tries: 0, waitedMs: 0 }));
    const worker = async (): Promise<void> => {
      for (;;) {
        const part = waiting.splice(0, this.singles ? 1 : this.batchSize);
        if (part.length === 0) return;
        await this.serve(part, waiting, answers);
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, this.options.concurrency) }, worker));
    return answers;
  }

  close(): void {
    this.caller.close();
  }

  /** Asks once for `part`; what has to be asked again, smaller or later, goes to the front of `waiting`. */
  private async serve(part: Waiting[], waiting: Waiting[], answers: Answer[]): Promise<void> {
    const held = await this.hold();
    if (held !== null) {
      for (const one of part) answers[one.index] = held;
      return;
    }
    const again: Waiting[] = [];
    let pauseMs = 0;
    const meanings = await this.call(part);
    const halve = part.length > 1 && meanings.every((meaning) => meaning.kind === 'too_big');
    if (halve) this.batchSize = Math.max(1, Math.min(this.batchSize, Math.floor(part.length / 2)));
    for (const [i, meaning] of meanings.entries()) {
      const one = part[i] as Waiting;
      switch (meaning.kind) {
        case 'verdict':
        case 'denial':
          answers[one.index] = meaning;
          break;
        case 'misconfigured':
          this.refused = meaning.detail;
          answers[one.index] = meaning;
          break;
        case 'not_understood':
          answers[one.index] = { kind: 'unavailable', detail: `the request is not understood: ${meaning.detail}` };
          break;
        case 'unsupported':
          this.singles = true;
          again.push(one);
          break;
        case 'too_big':
          if (halve) again.push(one);
          else answers[one.index] = { kind: 'unreadable', detail: meaning.detail };
          break;
        case 'rate_limited': {
          const waitMs = meaning.retryAfterMs ?? this.backoff(one.tries);
          one.waitedMs += waitMs;
          this.pausedUntil = Math.max(this.pausedUntil, this.now() + waitMs);
          this.options.onRateLimit?.(waitMs);
          if (one.waitedMs > this.patienceMs)
            answers[one.index] = { kind: 'unavailable', detail: `rate limited: ${meaning.detail}` };
          else again.push(one);
          break;
        }
        case 'infrastructure':
          one.tries++;
          if (one.tries >= (this.options.tries ?? 5))
            answers[one.index] = { kind: 'unavailable', detail: meaning.detail };
          else {
            pauseMs = Math.max(pauseMs, this.backoff(one.tries - 1));
            again.push(one);
          }
      }
    }
    await this.pause(pauseMs);
    waiting.unshift(...again);
  }

  /** Waits while the platform asks to; the answer for everybody where waiting or asking makes no sense. */
  private async hold(): Promise<Answer | null> {
    const waitMs = this.pausedUntil - this.now();
    if (waitMs > this.patienceMs)
      return { kind: 'unavailable', detail: 'rate limited for longer than a query may wait' };
    if (this.refused === null && !this.stopped) await this.pause(waitMs);
    if (this.refused !== null) return { kind: 'misconfigured', detail: this.refused };
    return this.stopped ? { kind: 'unavailable', detail: 'stopped' } : null;
  }

  private get patienceMs(): number {
    return this.options.patienceMs ?? 120_000;
  }

  private async call(part: Waiting[]): Promise<Meaning[]> {
    const queries = part.map((one) => one.query);
    const single = this.singles ? queries[0] : undefined;
    const all = (meaning: Meaning): Meaning[] => part.map(() => meaning);
    try {
      const path = `/api/v1/platforms/${this.options.platformId}/${single ? 'query' : 'query-batch'}`;
      const body = bodyText(single ? singleBody(single, false) : batchBody(queries));
      const answer = await this.caller.post(this.url(path), this.options.apiKey, body, {
        timeoutMs: this.options.callTimeoutMs ?? 60_000,
        maxBytes: BODY_BYTES,
        signal: this.options.signal,
      });
      const meaning = meaningOf({ ...answer, body: this.redact(answer.body) }, !single, this.now());
      if (meaning.kind !== 'verdict' || single) return all(clean(meaning));
      return itemMeanings(meaning.data, queries.length).map(clean);
    } catch (error) {
      if (error instanceof BadUrl) return all({ kind: 'misconfigured', detail: error.message });
      if (!(error instanceof CallFailed)) throw error;
      return all({ kind: 'infrastructure', detail: this.redact(messageOf(error)) });
    }
  }

  private url(path: string): URL {
    const base = URL.canParse(this.options.baseUrl) ? new URL(this.options.baseUrl) : null;
    if (!base || !/^https?:$/.test(base.protocol)) throw new BadUrl('the base URL is not an http or https address');
    return new URL(`${this.options.baseUrl}${path}`);
  }

  /** A platform that echoes the key must not bring it into a report. */
  private redact(text: string): string {
    const { apiKey } = this.options;
    return apiKey === '' ? text : text.replaceAll(apiKey, '[redacted]');
  }

  private get stopped(): boolean {
    return this.options.signal?.aborted === true;
  }

  private now(): number {
    return this.options.now?.() ?? performance.timeOrigin + performance.now();
  }

  private backoff(tries: number): number {
    const base = Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** tries);
    return base + (this.options.random ?? Math.random)() * base * 0.25;
  }

  private async pause(ms: number): Promise<void> {
    if (ms <= 0) return;
    if (this.options.sleep) await this.options.sleep(ms);
    else await delay(ms, undefined, this.options.signal ? { signal: this.options.signal } : {}).catch(() => undefined);
  }
}

class BadUrl extends Error {}

function clean(meaning: Meaning): Meaning {
  return 'detail' in meaning ? { ...meaning, detail: detailOf(meaning.detail) } : meaning;
}
