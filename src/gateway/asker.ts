// What the gateway needs of the verifier's side: one answer for one query, by a deadline or until nobody waits. The
// fleet's asker stands behind it (cache, single flight, batches, limits and breaker are its work); what is here only
// makes sure that local timers alone keep the deadline, whatever becomes of Redis.

import type { VerifierConfig } from '../shared/spec/verifier-config.ts';
import { type Answer, VerifierClient } from '../workers/verify/client.ts';
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

/** One asker per upstream: configs that ask the same platform share it. */
export class Askers {
  private readonly all = new Map<string, Asker>();
  private readonly open: OpenAsker;

  constructor(open: OpenAsker) {
    this.open = open;
  }

  of(verifier: VerifierConfig): Asker {
    const key = `${verifier.baseUrl} ${verifier.platformId}`;
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

/** The queries' answers, each by the deadline: what is missing then, or when nobody waits, is `unavailable`. */
export function answersInTime(asker: Asker, queries: readonly Query[], options: AskOptions): Promise<Answer[]> {
  const { signal, deadlineMs } = options;
  return new Promise((resolve) => {
    const answers = new Array<Answer | undefined>(queries.length);
    let missing = queries.length;
    const end = (detail: string): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', gone);
      resolve(Array.from(answers, (answer) => answer ?? { kind: 'unavailable', detail }));
    };
    const gone = (): void => end('nobody waits for the answer any more');
    const timer = setTimeout(() => end(`no answer by the deadline`), Math.max(0, deadlineMs));
    if (signal.aborted) return gone();
    if (missing === 0) return end('');
    signal.addEventListener('abort', gone, { once: true });
    for (const [i, query] of queries.entries()) {
      // One by one, so that a slow one holds back no other; the asker sends together what is asked in one turn.
      asker.ask([query], options).then(
        ([answer]) => {
          answers[i] = answer ?? { kind: 'unavailable', detail: 'the verifier gave no answer' };
          if (--missing === 0) end('');
        },
        (bug: unknown) => {
          answers[i] = { kind: 'unavailable', detail: `asking failed: ${bug instanceof Error ? bug.name : 'unknown'}` };
          if (--missing === 0) end('');
        },
      );
    }
  });
}

/** An asker of this process alone. */
export function clientAsker(verifier: VerifierConfig, apiKey: string): Asker {
  const stop = new AbortController();
  const { baseUrl, platformId, maxConcurrency } = verifier;
  const client = new VerifierClient({ baseUrl, platformId, apiKey, concurrency: maxConcurrency, signal: stop.signal });
  return {
    ask: (queries) => client.ask(queries),
    close: async () => {
      stop.abort();
      client.close();
    },
  };
}
