// Completions to results by the deadline, whatever becomes of single ones. Large requests are worked off in slices with
// a turn of the event loop in between, so that a hundred thousand items delay nobody else's deadline.

import type { VerifyItem, VerifyResult } from '../workers/verify/verify.ts';
import { verifyCompletions } from '../workers/verify/verify.ts';
import { type Askers, answersInTime } from './asker.ts';
import type { ScoreConfig } from './configs.ts';

export interface Patience {
  /** On the monotonic clock. */
  until: number;
  /** Nobody waits any more. */
  signal: AbortSignal;
}

const SLICE = 256;

export async function scoreItems(
  askers: Askers,
  config: ScoreConfig,
  items: readonly VerifyItem[],
  patience: Patience,
): Promise<VerifyResult[]> {
  const { verifier, epoch } = config;
  const asker = askers.of(verifier);
  const turns = new Turns(items.length > SLICE);
  // What is asked for is given up when the request is answered.
  const answered = new AbortController();
  const signal = AbortSignal.any([patience.signal, answered.signal]);
  const slices: Promise<VerifyResult[]>[] = [];
  try {
    for (let start = 0; start < items.length; start += SLICE) {
      await turns.next();
      const slice = verifyCompletions(verifier, items.slice(start, start + SLICE), {
        ask: async (queries) => {
          const deadlineMs = patience.until - performance.now();
          const answers = await answersInTime(asker, queries, { epoch, cache: verifier.cache, deadlineMs, signal });
          await turns.next();
          return answers;
        },
      });
      slice.catch(() => {});
      slices.push(slice);
    }
    return (await Promise.all(slices)).flat();
  } finally {
    answered.abort();
  }
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
