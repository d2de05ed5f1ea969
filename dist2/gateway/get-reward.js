// `POST /get_reward`, OpenRLHF's remote reward model: thousands of short connections with a sample each. It holds and
// never refuses for being busy, because the trainer's five tries are all it has; it answers before that trainer's 180 s
// are over, with the floor where there is no result; and its errors are the Python library's.
import { setTimeout as wait } from 'node:timers/promises';
import { sha256 } from '../shared/claim.js';
import { CallerGone } from './exchange.js';
import { Joins } from './joins.js';
import { linked } from './linked.js';
import { readRewardRequest, refusal, rewardBody } from './mapping/openrlhf.js';
import { noResult, outcomeOf } from './outcome.js';
import { completionOf } from './query-cut.js';
import { scoreItems } from './score.js';
import { countOutcomes } from './score-call.js';
/** Far outside any range of rewards: dynamic filtering then drops the group. */
const FILTERED = 1e9;
/** A trainer that lost its connection asks again after a second. */
const JOINING = { keepMs: 0, keepCount: 0, keepBytes: 0, lingerMs: 5_000 };
const TELL_EVERY_MS = 5_000;
export class RewardCall {
    desk;
    joins = new Joins(JOINING, (body) => body.length);
    untold = new Map();
    telling = false;
    constructor(desk) {
        this.desk = desk;
    }
    async serve(exchange) {
        const mode = exchange.query.get('no_result') ?? 'floor';
        if (mode !== 'floor' && mode !== 'filter')
            return sayError(exchange, 400, 'no_result must be floor or filter');
        const until = exchange.cameAt + this.desk.answerMs;
        const { gone, request } = exchange;
        const patience = linked([gone], until - performance.now());
        try {
            const config = this.desk.configs.get(exchange.query.get('config'));
            const answer = async (bytes) => {
                const key = `${config.name} ${mode} ${sha256(bytes)}`;
                const joined = await this.joins.join(key, '', gone, (signal) => this.reward(bytes, config, mode, until, signal));
                if (joined)
                    exchange.json(200, joined.value);
            };
            await this.desk.bodies.with(request, gone, answer, patience.signal);
        }
        catch (error) {
            if (error instanceof Malformed)
                return exchange.json(400, error.body);
            if (patience.late)
                return sayError(exchange, 503, 'the request could not be read in time');
            throw error;
        }
        finally {
            patience.release();
        }
    }
    async reward(bytes, config, mode, until, signal) {
        const { askers, metrics, samples, endTokens } = this.desk;
        const call = readRewardRequest(bytes);
        if ('status' in call)
            throw new Malformed(call.body);
        const items = call.completions.map((query, i) => {
            const prompt = call.prompts[i] ?? '';
            const completion = query === null || typeof prompt !== 'string' ? query : completionOf(query, prompt, endTokens);
            return { prompt, completion, metadata: call.metadata[i] ?? null };
        });
        const lost = noResult('verifier_unavailable', 'its turn did not come in time');
        const outcomes = items.map(() => lost);
        const count = Math.max(1, items.length);
        const turn = linked([signal], until - performance.now());
        const entered = await samples.take(count, turn.signal).then(() => true, () => false);
        turn.release();
        if (entered) {
            try {
                await scoreItems(askers, config, items, { until, signal }, (start, results) => {
                    for (const [i, one] of results.entries())
                        outcomes[start + i] = outcomeOf(one, 'reward');
                });
            }
            finally {
                samples.give(count);
            }
        }
        if (signal.aborted)
            throw new CallerGone();
        this.tell(countOutcomes(metrics, 'get_reward', outcomes));
        const { floor } = config.verifier;
        const rewards = outcomes.map((one) => (one.status === 'completed' ? one.reward : floor));
        const scores = outcomes.map((one, i) => one.status === 'completed' || mode === 'floor' ? rewards[i] : FILTERED);
        return rewardBody(rewards, scores);
    }
    /** A trainer that cannot be told in the answer is told in the log: how many got the floor for lack of a result. */
    tell(causes) {
        for (const [cause, n] of causes)
            this.untold.set(cause, (this.untold.get(cause) ?? 0) + n);
        if (this.untold.size === 0 || this.telling)
            return;
        this.telling = true;
        void wait(TELL_EVERY_MS, undefined, { ref: false }).then(() => {
            this.telling = false;
            this.desk.log.warn({ call: 'get_reward', ...Object.fromEntries(this.untold) }, 'samples got the floor: there is no result for them');
            this.untold.clear();
        });
    }
}
class Malformed extends Error {
    body;
    constructor(body) {
        super('malformed request');
        this.body = body;
    }
}
export function sayError(exchange, status, error) {
    exchange.json(status, refusal(400, error).body);
}
