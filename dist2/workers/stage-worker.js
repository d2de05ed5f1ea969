// What the workers of both stages have in common: take a job, begin an attempt if the ledger allows it, keep its lease
// while the stage works on it, write one wide line, and go away drained or at once. What the stage does is its own.
import pLimit, {} from 'p-limit';
import { messageOf } from '../shared/errors.js';
import { MEMBER_LANES } from '../shared/lane.js';
import { MemberLedger } from '../shared/ledger/member-ledger.js';
import { RunLedger } from '../shared/ledger/run-ledger.js';
import { detailOf } from '../shared/outcome.js';
import { announce } from '../shared/presence.js';
import { consume } from '../shared/queue.js';
import { AttemptEnded, Attempts } from './attempts.js';
import { Companies } from './company.js';
import { isFarmFault } from './farm-fault.js';
import { Runs } from './runs.js';
/** A part of the farm that fails (store, engine, Redis) gives members back; they are due again after this. */
const DEPENDENCY_DELAY_MS = 2_000;
export async function startStageWorker(context, work) {
    const { redis, place, realm, worker, slots, log } = context;
    const ledger = new MemberLedger(redis, worker);
    const attempts = new Attempts(ledger);
    const companies = new Companies(ledger);
    const runs = new Runs(redis, context.config);
    const presence = await announce(redis, { role: work.stage, realm, worker, slots });
    async function handle(job, lane, at) {
        const run = await runs.get(job.run);
        if ('refused' in run)
            return log.warn({ run: job.run, why: run.refused }, 'member left alone');
        const suspects = [];
        const beginning = (members) => (company) => ledger.beginAll(job.run, members, work.stage, company);
        const playing = (members) => async (begun) => {
            const played = begun.map((attempt, i) => {
                if (!('refused' in attempt))
                    return at(() => perform(attempt, run, attempts.start(attempt, lane, work.phase)));
                const member = members[i];
                if (attempt.refused === 'suspect')
                    suspects.push(member);
                return log.debug({ run: job.run, ...member, why: attempt.refused }, 'not begun');
            });
            // One that throws is a bug, and must not take the others' slots.
            for (const end of await Promise.allSettled(played))
                if (end.status === 'rejected')
                    throw end.reason;
        };
        const members = job.members.map(([group, member]) => ({ group, member }));
        await companies.among(members.length, beginning(members), playing(members));
        for (const suspect of suspects.splice(0)) {
            log.info({ run: job.run, ...suspect }, 'a worker died under this member: it waits to be alone here');
            await companies.alone(beginning([suspect]), playing([suspect]));
        }
    }
    async function perform(attempt, run, running) {
        const began = performance.now();
        const { group, member, taskId } = attempt;
        const who = { run: attempt.run, group, member, attempt: attempt.attempt, task: taskId };
        try {
            const told = await work
                .perform(attempt, run, running, ledger)
                .catch((error) => lost(attempt, running, error));
            log.info({ ...who, wall_ms: Math.round(performance.now() - began), ...told }, work.line);
        }
        finally {
            attempts.end(running);
        }
        await running.after;
    }
    /** The attempt did not come to an end of its own: told to end, a part of the farm failed, or there is a bug. */
    async function lost(attempt, running, error) {
        const reason = running.signal.aborted ? running.signal.reason : error;
        if (reason instanceof AttemptEnded && reason.reason !== 'stop')
            return { status: 'ended', why: reason.reason };
        const stopped = reason instanceof AttemptEnded;
        const pause = !stopped && isFarmFault(error);
        const detail = detailOf(messageOf(error));
        const said = await ledger.fail(attempt, {
            cause: work.failure,
            detail,
            charged: !stopped && !pause,
            delayMs: stopped ? 0 : DEPENDENCY_DELAY_MS,
        });
        if (!stopped)
            log.error({ run: attempt.run, error: detail }, pause ? 'a part of the farm failed' : 'an attempt failed');
        // The store or the engine failed, not this member: the whole run waits instead of spending its attempts.
        if (pause)
            await new RunLedger(redis, attempt.run).setState('paused', detail);
        return { status: stopped || pause ? 'given back' : 'failed', why: detail, ledger: said };
    }
    // Slots of a lane are its own: a slot that is free in one takes nothing of another.
    const consumers = MEMBER_LANES.flatMap((lane) => {
        const at = slots[lane] ?? 0;
        const onError = (error) => log.error({ lane, error: messageOf(error) }, 'queue');
        const members = pLimit(Math.max(1, at));
        return at === 0 ? [] : [consume(place, realm, lane, at, (job) => handle(job, lane, members), onError)];
    });
    const close = async () => {
        attempts.close();
        await presence.stop();
        await work.close();
    };
    return {
        guest: () => companies.guest(),
        drain: async () => {
            companies.close();
            await Promise.all(consumers.map((consumer) => consumer.drain()));
            await close();
        },
        stop: async () => {
            companies.close();
            const closing = Promise.all(consumers.map((consumer) => consumer.close()));
            attempts.abortAll();
            work.interrupt?.();
            await attempts.idle();
            await closing;
            await close();
        },
    };
}
