// Completions to results by the deadline, whatever becomes of single ones. Large requests are worked off in slices with
// a turn of the event loop in between, so that a hundred thousand items delay nobody else's deadline; what a slice
// brought is handed over at once and not kept here. Equal queries of different slices are asked once.

import type { VerifierConfig } from '../shared/spec/verifier-config.ts';
import { cacheKey } from '../workers/verify/cache-key.ts';
import type { Answer } from '../workers/verify/client.ts';
import { type VerifyItem, type VerifyResult, verifyCompletions } from '../workers/verify/verify.ts';
import type { Query } from '../workers/verify/wire-request.ts';
import { type Askers, answersInTime } from './asker.ts';
import type { ScoreConfig } from './configs.ts';
import { linked } from './linked.ts';

export interface Patience {
  /** On the monotonic clock. */
  until: number;
  /** Nobody waits any more. */
  signal: AbortSignal;
}

type Ask = (queries: readonly Query[]) => Promise<Answer[]>;

export const SLICE = 256;

/** `done` gets the results of each slice, with the index of its first item; slices come in any order. */
export async function scoreItems(
  askers: Askers,
  config: ScoreConfig,
  items: readonly VerifyItem[],
  patience: Patience,
  done: (start: number, results: VerifyResult[]) => void,
): Promise<void> {
  const { verifier, epoch } = config;
  const asker = askers.of(verifier);
  const turns = new Turns(items.length > SLICE);
  // What is asked for is given up when the request is answered.
  const asking = linked([patience.signal]);
  const { signal } = asking;
  const askNow: Ask = (queries) => {
    const deadlineMs = patience.until - performance.now();
    return answersInTime(asker, queries, { epoch, cache: verifier.cache, deadlineMs, signal });
  };
  const ask = items.length > SLICE ? askedOnce(verifier, askNow) : askNow;
  const slices: Promise<void>[] = [];
  try {
    for (let start = 0; start < items.length; start += SLICE) {
      await turns.next();
      const slice = verifyCompletions(verifier, items.slice(start, start + SLICE), {
        ask: async (queries) => {
          const answers = await ask(queries);
          await turns.next();
          return answers;
        },
      }).then((results) => done(start, results));
      slice.catch(() => {});
      slices.push(slice);
    }
    await Promise.all(slices);
  } finally {
    asking.release();
    asking.abort();
  }
}

function askedOnce({ platformId }: VerifierConfig, ask: Ask): Ask {
  const known = new Map<string, Promise<Answer>>();
  return async (queries) => {
    const keys = queries.map((query) => cacheKey(platformId, query));
    const fresh: number[] = [];
    for (const [i, key] of keys.entries()) if (!known.has(key)) fresh.push(i);
    if (fresh.length > 0) {
      const answers = ask(fresh.map((i) => queries[i] as Query));
      for (const [at, i] of fresh.entries())
        known.set(
          keys[i] as string,
          answers.then((all) => all[at] as Answer),
        );
    }
    return await Promise.all(keys.map((key) => known.get(key) as Promise<Answer>));
  };
}

/** One turn of the event loop for each who asks, one after another. */
export class Turns {
  private last: Promise<void> = Promise.resolve();
  private readonly needed: boolean;

  constructor(needed: boolean) {
    this.needed = needed;
  }

  next(): Promise<void> {
    if (!this.needed) return Promise.resolve();
    this.last = this.last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return this.last;
  }
}
