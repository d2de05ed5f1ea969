// `POST /v1/score` over HTTP: admitted or told to come back (429), read, scored by its deadline, answered. A repeated
// Idempotency-Key joins the request that is under way, or gets its kept answer.

import { sha256 } from '../shared/claim.ts';
import type { Admission } from './admission.ts';
import type { Askers } from './asker.ts';
import type { Bodies } from './body.ts';
import type { ScoreConfigs } from './configs.ts';
import type { Episodes } from './episodes.ts';
import type { Exchange } from './exchange.ts';
import { Joins } from './joins.ts';
import type { GatewayMetrics } from './metrics.ts';
import { type Outcome, outcomeOf, ScoreAnswer } from './outcome.ts';
import { busy, HttpProblem } from './problem.ts';
import { scoreItems } from './score.ts';
import { readScoreRequest, type ScoreRequest } from './score-request.ts';

export interface ScoreDesk {
  configs: ScoreConfigs;
  askers: Askers;
  episodes: Episodes;
  metrics: GatewayMetrics;
  bodies: Bodies;
  /** What may be inside at once. */
  requests: Admission;
  samples: Admission;
}

const JOINING = { keepMs: 600_000, keepCount: 10_000, keepBytes: 64 * 1024 * 1024, lingerMs: 10_000 };
const KEY = /^[\x21-\x7e]{1,256}$/;

export class ScoreCall {
  private readonly desk: ScoreDesk;
  private readonly joins = new Joins<Buffer[]>(JOINING, (chunks) =>
    chunks.reduce((sum, chunk) => sum + chunk.length, 0),
  );

  constructor(desk: ScoreDesk) {
    this.desk = desk;
  }

  /** Throws HttpProblem, or CallerGone. */
  async serve(exchange: Exchange): Promise<void> {
    const { requests, bodies } = this.desk;
    if (!requests.tryTake(1)) throw busy(`${requests.capacity} requests are being scored`, 1);
    try {
      await bodies.with(exchange.request, exchange.gone, async (bytes) => {
        const { value, repeated } = await this.answer(exchange, bytes);
        await sendChunks(exchange, value, repeated);
      });
    } finally {
      requests.give(1);
    }
  }

  private async answer(exchange: Exchange, bytes: Buffer): Promise<{ value: Buffer[]; repeated: boolean }> {
    const key = exchange.header('idempotency-key');
    if (key === null)
      return {
        value: await this.score(await readScoreRequest(bytes), exchange.cameAt, exchange.gone),
        repeated: false,
      };
    if (!KEY.test(key))
      throw new HttpProblem(400, 'idempotency_key', 'Idempotency-Key must be 1 to 256 visible ASCII characters');
    const joined = await this.joins.join(key, requestHash(bytes), exchange.gone, async (signal) =>
      this.score(await readScoreRequest(bytes), exchange.cameAt, signal),
    );
    if (joined === null)
      throw new HttpProblem(
        422,
        'idempotency_mismatch',
        'this Idempotency-Key was used for another request',
        'draw a new key for each request',
      );
    return joined;
  }

  private async score(request: ScoreRequest, cameAt: number, signal: AbortSignal): Promise<Buffer[]> {
    const { configs, askers, episodes, metrics, samples } = this.desk;
    const count = request.items.length;
    const named = request.config !== null || request.environment === null || request.onNoResult === 'floor';
    const config = named ? configs.get(request.config) : null;
    if (!samples.tryTake(count)) throw busy(`${samples.inside} of ${samples.capacity} samples are being scored`, 1);
    try {
      const patience = { until: cameAt + request.deadlineMs, signal };
      const floor = request.onNoResult === 'floor' ? (config?.verifier.floor ?? null) : null;
      const answer = new ScoreAnswer(count, floor);
      const add = (start: number, outcomes: readonly Outcome[]): void => {
        countOutcomes(metrics, 'score', outcomes);
        answer.add(start, outcomes);
      };
      const { environment, items, parsed } = request;
      if (environment !== null) {
        const completions = items.map((item) => item.completion);
        add(0, await episodes.score(environment, completions, patience));
      } else if (config !== null)
        await scoreItems(askers, config, items, patience, (start, results) =>
          add(
            start,
            results.map((one) => outcomeOf(one, parsed ? 'parsed' : 'report')),
          ),
        );
      if (signal.aborted) throw signal.reason;
      return answer.chunks();
    } finally {
      samples.give(count);
    }
  }
}

export function countOutcomes(
  metrics: GatewayMetrics,
  call: string,
  outcomes: readonly Outcome[],
): Map<string, number> {
  const causes = new Map<string, number>();
  for (const one of outcomes) if (one.status === 'no_result') causes.set(one.cause, (causes.get(one.cause) ?? 0) + 1);
  const lost = [...causes.values()].reduce((sum, n) => sum + n, 0);
  if (outcomes.length > lost) metrics.samples.add({ call, status: 'completed' }, outcomes.length - lost);
  if (lost > 0) metrics.samples.add({ call, status: 'no_result' }, lost);
  for (const [cause, n] of causes) metrics.noResult.add({ call, cause }, n);
  return causes;
}

async function sendChunks(exchange: Exchange, chunks: readonly Buffer[], repeated: boolean): Promise<void> {
  const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  exchange.response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': length,
    'cache-control': 'no-store',
    ...(repeated ? { 'idempotent-replayed': 'true' } : {}),
  });
  for (const chunk of chunks) await exchange.write(chunk);
  exchange.end();
}

/** A repetition has less time left than the first call: `deadline_ms` is no part of what was asked, wherever it stands. */
function requestHash(bytes: Buffer): string {
  return sha256(bytes.toString('latin1').replace(/"deadline_ms"\s*:\s*[^,}]*/g, ''));
}
