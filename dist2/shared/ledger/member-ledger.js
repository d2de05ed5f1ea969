// The worker's side of the ledger: begin an attempt, keep its lease, hand on what was rolled, have an outcome
// accepted. Every write carries the attempt's fencing token; what comes late is told so, kept as evidence and never counted.
import { randomBytes } from 'node:crypto';
import { placeSchema } from '../plan/plan.js';
import { packBlobs, unpackBlobs } from './blob.js';
import { defineScript } from './script.js';
/** A member's lease, renewed every second: an event loop that stalls for six loses nothing, and take-over after a death stays within 10 s. */
export const LEASE_MS = 7_500;
export const BEAT_MS = 1_000;
const BEGIN = defineScript('begin', { allowOom: true });
const BEAT = defineScript('beat', { allowOom: true });
const ROLLED = defineScript('rolled', { allowOom: true });
const ACCEPT = defineScript('accept', { allowOom: true });
const JOINED = defineScript('joined', { allowOom: true });
const FAIL = defineScript('fail', { allowOom: true });
export const IN_COMPANY = { alone: false, suspects: false };
/** A few hundred KB in a call, at most. */
const ACCEPTED_AT_ONCE = 64;
export class MemberLedger {
    redis;
    worker;
    /** Outcomes of a run that are told in the next step. */
    accepting = new Map();
    /** `worker`: incarnation of this process, so that its members can be given back when it is known to be dead. */
    constructor(redis, worker) {
        this.redis = redis;
        this.worker = worker;
    }
    /** Draws a token, or says why not (`leased`, `closed`, `accepted`, `paused`, …): then the job is none of ours. `suspect`: not in this company. */
    async begin(id, stage, company = IN_COMPANY) {
        return (await this.beginAll(id.run, [id], stage, company))[0];
    }
    /** Several members of one run in one step; the answers are in their order. */
    async beginAll(run, members, stage, company = IN_COMPANY) {
        const ids = members.map(({ group, member }) => ({ run, group, member, token: randomBytes(16).toString('hex') }));
        const args = ids.flatMap(({ group, member, token }) => [group, member, token]);
        const how = [company.alone ? 1 : 0, company.suspects ? 1 : 0];
        const head = [stage, this.worker, LEASE_MS, ...how];
        const answers = (await BEGIN.callBuffer(this.redis, run, [...head, ...args]));
        return ids.map((id, i) => attemptOf(id, answers[i] ?? []));
    }
    /** Something begins to work beside an attempt that was begun alone. */
    async joined({ run, group, member, token }) {
        await JOINED.call(this.redis, run, [group, member, token]);
    }
    /** Renews the leases of attempts of one run; the answers are in their order. */
    async beat(run, attempts) {
        const args = attempts.flatMap((a) => [a.group, a.member, a.token, a.phase]);
        return (await BEAT.call(this.redis, run, [LEASE_MS, ...args]));
    }
    /** Hands an episode on to the verifier: the run's driver queues it. */
    async rolled(attempt, text, blobs) {
        const args = [attempt.group, attempt.member, attempt.token, text, packBlobs(blobs)];
        return (await ROLLED.call(this.redis, attempt.run, args));
    }
    /** `accepted`, once; or why it was not counted. What is told at the same moment goes in one step. */
    accept(attempt, record, blobs) {
        const cause = record.status === 'no_result' ? record.cause : '';
        const { group, member, token } = attempt;
        const args = [group, member, token, record.status, JSON.stringify(record), packBlobs(blobs), cause];
        let batch = this.accepting.get(attempt.run);
        if (!batch) {
            const opened = { args: [], answers: null };
            batch = opened;
            this.accepting.set(attempt.run, opened);
        }
        const at = batch.args.length;
        batch.args.push(args);
        batch.answers ??= this.flush(attempt.run, batch);
        if (batch.args.length >= ACCEPTED_AT_ONCE)
            this.accepting.delete(attempt.run);
        return batch.answers.then((answers) => answers[at]);
    }
    async flush(run, batch) {
        await new Promise((resolve) => setImmediate(resolve));
        if (this.accepting.get(run) === batch)
            this.accepting.delete(run);
        return (await ACCEPT.call(this.redis, run, batch.args.flat()));
    }
    /** The ledger decides whether there is another try: `retry`, or `no_result` is now the outcome. */
    async fail(attempt, failure) {
        const { cause, detail, charged, delayMs, signature } = failure;
        const args = [
            attempt.group,
            attempt.member,
            attempt.token,
            cause,
            JSON.stringify(detail),
            charged ? 1 : 0,
            delayMs,
            signature ?? '',
        ];
        return (await FAIL.call(this.redis, attempt.run, args));
    }
}
function attemptOf(id, answer) {
    const [word, attempt, task, place, rolled, blobs, signature] = answer;
    if (word.toString() !== 'begun')
        return { refused: attempt.toString() };
    return {
        ...id,
        attempt: Number(attempt.toString()),
        taskId: task.toString(),
        place: placeSchema.parse(JSON.parse(place.toString())),
        rolled: rolled.length > 0 ? rolled.toString() : null,
        blobs: unpackBlobs(blobs),
        knownSignature: signature.length > 0 ? signature.toString() : null,
    };
}
