// What the gateway needs of the verifier's side: one answer for one query, by a deadline or until nobody waits. The
// fleet's asker stands behind it (cache, single flight, batches, limits and breaker are its work); what is here only
// makes sure that local timers alone keep the deadline, whatever becomes of Redis.

import { messageOf } from '../shared/errors.ts';
import type { VerifierConfig } from '../shared/spec/verifier-config.ts';
import type { Answer } from '../workers/verify/client.ts';
import type { Query } from '../workers/verify/wire-request.ts';

export interface AskOptions {
  /** Answers are shared within an epoch only: rulebooks are edited. */
  epoch: string;
  cache: boolean;
  /** From now. */
  deadlineMs: number;
  /** Nobody waits any more. */
  signal: AbortSignal;
}

export interface Asker {
  /** Never rejects; one answer a query, in order. */
  ask(queries: readonly Query[], options: AskOptions): Promise<Answer[]>;
  close(): Promise<void>;
}

/** Makes the asker of one upstream. */
export type OpenAsker = (verifier: VerifierConfig) => Asker;

/** One asker per upstream and limits: configs that ask the same platform in the same way share it. */
export class Askers {
  private readonly all = new Map<string, Asker>();
  private readonly open: OpenAsker;

  constructor(open: OpenAsker) {
    this.open = open;
  }

  of(verifier: VerifierConfig): Asker {
    const { baseUrl, platformId, maxConcurrency, requestsPerSecond } = verifier;
    const key = JSON.stringify([baseUrl, String(platformId), maxConcurrency, requestsPerSecond]);
    let asker = this.all.get(key);
    if (!asker) {
      asker = this.open(verifier);
      this.all.set(key, asker);
    }
    return asker;
  }

  async close(): Promise<void> {
    await Promise.all([...this.all.values()].map((asker) => asker.close()));
  }
}

/** The asker is trusted to answer by the deadline, and not relied upon: so long after it, it is not waited for. */
const GUARD_MS = 300;

/** The queries' answers by the deadline: what is missing then, or when nobody waits, is `unavailable`. */
export function answersInTime(asker: Asker, queries: readonly Query[], options: AskOptions): Promise<Answer[]> {
  const { signal, deadlineMs } = options;
  return new Promise((resolve) => {
    const end = (answers: Answer[] | string): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', gone);
      resolve(typeof answers === 'string' ? queries.map(() => ({ kind: 'unavailable', detail: answers })) : answers);
    };
    const gone = (): void => end('nobody waits for the answer any more');
    const timer = setTimeout(() => end('no answer by the deadline'), Math.max(0, deadlineMs) + GUARD_MS);
    if (signal.aborted) return gone();
    signal.addEventListener('abort', gone, { once: true });
    asker.ask(queries, options).then(end, (bug: unknown) => end(`asking failed: ${messageOf(bug)}`));
  });
}
