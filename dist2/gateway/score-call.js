// `POST /v1/score` over HTTP: admitted or told to come back (429), read, scored by its deadline, answered. A repeated
// Idempotency-Key joins the request that is under way, or gets its kept answer.
import { sha256 } from '../shared/claim.js';
import { Joins } from './joins.js';
import { outcomeOf, ScoreAnswer } from './outcome.js';
import { busy, HttpProblem } from './problem.js';
import { scoreItems } from './score.js';
import { readScoreRequest } from './score-request.js';
const JOINING = { keepMs: 600_000, keepCount: 10_000, keepBytes: 64 * 1024 * 1024, lingerMs: 10_000 };
const KEY = /^[\x21-\x7e]{1,256}$/;
export class ScoreCall {
    desk;
    joins = new Joins(JOINING, (chunks) => chunks.reduce((sum, chunk) => sum + chunk.length, 0));
    constructor(desk) {
        this.desk = desk;
    }
    /** Throws HttpProblem, or CallerGone. */
    async serve(exchange) {
        const { requests, bodies } = this.desk;
        if (!requests.tryTake(1))
            throw busy(`${requests.capacity} requests are being scored`, 1);
        try {
            await bodies.with(exchange.request, exchange.gone, async (bytes) => {
                const { value, repeated } = await this.answer(exchange, bytes);
                await sendChunks(exchange, value, repeated);
            });
        }
        finally {
            requests.give(1);
        }
    }
    async answer(exchange, bytes) {
        const key = exchange.header('idempotency-key');
        if (key === null)
            return {
                value: await this.score(await readScoreRequest(bytes), exchange.cameAt, exchange.gone),
                repeated: false,
            };
        if (!KEY.test(key))
            throw new HttpProblem(400, 'idempotency_key', 'Idempotency-Key must be 1 to 256 visible ASCII characters');
        const joined = await this.joins.join(key, requestHash(bytes), exchange.gone, async (signal) => this.score(await readScoreRequest(bytes), exchange.cameAt, signal));
        if (joined === null)
            throw new HttpProblem(422, 'idempotency_mismatch', 'this Idempotency-Key was used for another request', 'draw a new key for each request');
        return joined;
    }
    async score(request, cameAt, signal) {
        const { configs, askers, episodes, metrics, samples } = this.desk;
        const count = request.items.length;
        const named = request.config !== null || request.environment === null || request.onNoResult === 'floor';
        const config = named ? configs.get(request.config) : null;
        if (!samples.tryTake(count))
            throw busy(`${samples.inside} of ${samples.capacity} samples are being scored`, 1);
        try {
            const patience = { until: cameAt + request.deadlineMs, signal };
            const floor = request.onNoResult === 'floor' ? (config?.verifier.floor ?? null) : null;
            const answer = new ScoreAnswer(count, floor);
            const add = (start, outcomes) => {
                countOutcomes(metrics, 'score', outcomes);
                answer.add(start, outcomes);
            };
            const { environment, items, parsed } = request;
            if (environment !== null) {
                const completions = items.map((item) => item.completion);
                add(0, await episodes.score(environment, completions, patience));
            }
            else if (config !== null)
                await scoreItems(askers, config, items, patience, (start, results) => add(start, results.map((one) => outcomeOf(one, parsed ? 'parsed' : 'report'))));
            if (signal.aborted)
                throw signal.reason;
            return answer.chunks();
        }
        finally {
            samples.give(count);
        }
    }
}
export function countOutcomes(metrics, call, outcomes) {
    const causes = new Map();
    for (const one of outcomes)
        if (one.status === 'no_result')
            causes.set(one.cause, (causes.get(one.cause) ?? 0) + 1);
    const lost = [...causes.values()].reduce((sum, n) => sum + n, 0);
    if (outcomes.length > lost)
        metrics.samples.add({ call, status: 'completed' }, outcomes.length - lost);
    if (lost > 0)
        metrics.samples.add({ call, status: 'no_result' }, lost);
    for (const [cause, n] of causes)
        metrics.noResult.add({ call, cause }, n);
    return causes;
}
async function sendChunks(exchange, chunks, repeated) {
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    exchange.response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': length,
        'cache-control': 'no-store',
        ...(repeated ? { 'idempotent-replayed': 'true' } : {}),
    });
    for (const chunk of chunks)
        await exchange.write(chunk);
    exchange.end();
}
/** A repetition has less time left than the first call: `deadline_ms` is no part of what was asked, wherever it stands. */
function requestHash(bytes) {
    return sha256(bytes.toString('latin1').replace(/"deadline_ms"\s*:\s*[^,}]*/g, ''));
}
