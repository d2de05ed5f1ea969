// Trying again, in one place: a call to S3 that may pass is repeated with growing rests until its deadline, one that
// cannot is given up at once. A try that stands still is cut, whether it waits for an answer or for the rest of one.

import { setTimeout as wait } from 'node:timers/promises';
import type { Call } from './s3-client.ts';
import { mayPass, S3Error, s3FaultKind } from './s3-fault.ts';

export interface Patience {
  /** Counted from the first failure: how long a call is repeated before the store counts as not answering. */
  giveUpMs: number;
  /** How long a try may stand still. */
  stillMs: number;
  /** What a slow line moves: an upload may take that much longer. */
  slowBytesPerMs: number;
  /** Before the first repetition; doubled for each further one, up to `restMostMs`. */
  restMs: number;
  restMostMs: number;
}

export const PATIENCE: Patience = {
  // Throttling and a restarted server pass within this; what lasts longer is told, and its runs pause.
  giveUpMs: 20_000,
  stillMs: 10_000,
  slowBytesPerMs: 512,
  restMs: 100,
  restMostMs: 2_000,
};
/** Throws the last S3Error. `sent`: bytes that each try uploads. `turn` lets a try begin when there is a socket for it. */
export async function persist<T>(
  patience: Patience,
  turn: <R>(work: () => Promise<R>) => Promise<R>,
  sent: number,
  attempt: (call: Call) => Promise<T>,
): Promise<T> {
  let until = Number.POSITIVE_INFINITY;
  for (let tries = 0; ; tries++) {
    try {
      return await turn(() => once(patience.stillMs + sent / patience.slowBytesPerMs, attempt));
    } catch (error) {
      if (!(error instanceof S3Error) || !mayPass(s3FaultKind(error.failure))) throw error;
      until = Math.min(until, performance.now() + patience.giveUpMs);
      // A part of it by chance, so that a hundred workers do not come back in one moment.
      const rest = Math.min(patience.restMs * 2 ** tries, patience.restMostMs) * (0.5 + Math.random() / 2);
      if (performance.now() + rest > until) throw error;
      await wait(rest);
    }
  }
}

async function once<T>(stillMs: number, attempt: (call: Call) => Promise<T>): Promise<T> {
  const cut = new AbortController();
  const timer = setTimeout(() => cut.abort(), stillMs);
  try {
    return await attempt({ signal: cut.signal, alive: () => timer.refresh() });
  } catch (error) {
    if (!cut.signal.aborted || !(error instanceof S3Error)) throw error;
    const { operation } = error.failure;
    throw new S3Error(
      {
        operation,
        code: 'Timeout',
        status: null,
        message: `nothing came for ${(stillMs / 1000).toFixed(0)} s`,
        region: null,
      },
      error,
    );
  } finally {
    clearTimeout(timer);
  }
}
