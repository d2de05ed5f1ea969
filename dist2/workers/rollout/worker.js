// The rollout worker: plays a member's episode and has the outcome accepted, or hands it on to the verifier. What goes
// wrong is told to the ledger, which alone decides whether there is another try.
import { messageOf, missingError } from '../../shared/errors.js';
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { detailOf } from '../../shared/outcome.js';
import { startStageWorker } from '../stage-worker.js';
import { Closings } from './closing.js';
import { EngineWatch } from './engine-watch.js';
import { InteractiveWorker } from './interactive.js';
import { playMember } from './play.js';
const SWEEP_MS = 20_000;
/** Before the second and the third attempt. */
const BACKOFF_MS = [500, 2_000];
export async function startRolloutWorker(context, driver, alive) {
    const { worker, log, farmId } = context;
    /** Containers of workers that are not there any more. */
    const sweep = async () => {
        try {
            const workers = await alive();
            const swept = await driver.sweep(farmId, (w) => w === worker || workers.has(w));
            if (swept > 0)
                log.warn({ swept }, 'removed containers without an owner');
        }
        catch (error) {
            log.debug({ error: messageOf(error) }, 'could not sweep');
        }
    };
    void sweep();
    const sweeper = setInterval(() => void sweep(), SWEEP_MS);
    const watch = new EngineWatch(driver, log, (run, reason) => new RunLedger(context.redis, run).setState('paused', reason));
    const { interactive: reserved = 0, rollout = 0 } = context.slots;
    const closings = new Closings(rollout, log, () => role.guest());
    /** Slots for sandboxed members that are taken: light ones have slots of their own. */
    let atWork = 0;
    async function perform(attempt, run, running, ledger) {
        const engine = watch.begin(attempt.run);
        const boxed = running.lane === 'rollout' ? 1 : 0;
        atWork += boxed;
        const closing = (closed) => {
            running.after = closings.keep(`${attempt.run} ${attempt.group}-${attempt.member}`, closed);
        };
        const played = await playMember(attempt, run, { driver, farmId, worker, running, closing }).finally(() => {
            engine.end();
            void (running.after ?? Promise.resolve()).then(() => {
                atWork -= boxed;
            });
        });
        const lost = played.status === 'no_result' ? played.cause.startsWith('sandbox_') : played.record.diagnostics.length > 0;
        if (lost && engine.wasSilent())
            throw missingError('engine_silent', 'the Docker engine did not answer while the episode was at work');
        if (played.status === 'no_result')
            return await without(played, attempt, ledger);
        const { record, blobs } = played;
        const { reward, steps, seconds, diagnostics } = record;
        const told = { status: 'completed', reward, steps, seconds, start_ms: played.startMs, diagnostics };
        if (!played.verify)
            return { ...told, ledger: await ledger.accept(attempt, record, blobs) };
        return { ...told, ledger: await ledger.rolled(attempt, JSON.stringify(record), blobs) };
    }
    async function without(played, attempt, ledger) {
        const { cause, detail, signature } = played;
        // A box that is lost because the engine is: nobody's attempt, and the run waits for it.
        if (cause.startsWith('sandbox_') && !(await driver.answers())) {
            throw missingError('engine_silent', `the Docker engine does not answer: ${detail}`);
        }
        const said = await ledger.fail(attempt, {
            cause,
            detail: detailOf(detail),
            charged: true,
            delayMs: BACKOFF_MS[Math.min(attempt.attempt, BACKOFF_MS.length) - 1],
            ...(signature === undefined ? {} : { signature }),
        });
        return { status: 'no_result', cause, detail, ledger: said };
    }
    const role = await startStageWorker(context, {
        stage: 'rollout',
        line: 'attempt',
        phase: 'reading the task',
        failure: 'environment_error',
        perform,
        close: async () => {
            clearInterval(sweeper);
            watch.close();
        },
    });
    // Slots of its own, and those that runs leave idle; runs never wait for it.
    const slots = () => reserved + Math.max(0, rollout - atWork);
    const interactive = reserved === 0 ? null : new InteractiveWorker({ context, driver, slots, enter: role.guest });
    const ended = async (how) => {
        await Promise.all([role[how](), interactive?.[how]()]);
        await closings.settled();
        await driver.close();
    };
    return { drain: () => ended('drain'), stop: () => ended('stop') };
}
