// The rollout worker: takes a member, begins an attempt, plays its episode, and has the outcome accepted, or hands it
// on to the verifier. What goes wrong is told to the ledger, which alone decides whether there is another try.

import { messageOf, missingError } from '../../shared/errors.ts';
import { type Attempt, MemberLedger } from '../../shared/ledger/member-ledger.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { detailOf } from '../../shared/outcome.ts';
import { announce } from '../../shared/presence.ts';
import { consume, type MemberJob, MemberQueue } from '../../shared/queue.ts';
import type { SandboxDriver } from '../../shared/sandbox.ts';
import { AttemptEnded, Attempts, type Running } from '../attempts.ts';
import { isFarmFault } from '../farm-fault.ts';
import type { Role, RoleContext } from '../role.ts';
import { type KnownRun, Runs } from '../runs.ts';
import { type Played, playMember } from './play.ts';

const SWEEP_MS = 20_000;
/** Containers of a worker that is not announced any more are swept. */
const BACKOFF_MS = [500, 2_000] as const;
/** A dependency that fails (store, engine) gives members back; they are due again after this. */
const DEPENDENCY_DELAY_MS = 2_000;

export async function startRolloutWorker(
  context: RoleContext,
  driver: SandboxDriver,
  alive: () => Promise<ReadonlySet<string>>,
): Promise<Role> {
  const { redis, place, realm, worker, log } = context;
  const ledger = new MemberLedger(redis, worker);
  const attempts = new Attempts(ledger);
  const runs = new Runs(redis, context.config);
  const verifyQueue = new MemberQueue(place, realm);
  const presence = await announce(redis, { role: 'rollout', realm, worker });

  const sweep = async (): Promise<void> => {
    try {
      const workers = await alive();
      const swept = await driver.sweep(context.farmId, (w) => w === worker || workers.has(w));
      if (swept > 0) log.warn({ swept }, 'removed containers without an owner');
    } catch (error) {
      log.debug({ error: messageOf(error) }, 'could not sweep');
    }
  };
  void sweep();
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);

  async function handle(job: MemberJob): Promise<void> {
    const run = await runs.get(job.run);
    if ('refused' in run) return log.warn({ run: job.run, why: run.refused }, 'member left alone');
    const attempt = await ledger.begin(job, 'rollout');
    if ('refused' in attempt) return log.debug({ ...job, why: attempt.refused }, 'not begun');
    const running = attempts.start(attempt, 'reading the task');
    const began = performance.now();
    try {
      const told = await settle(attempt, run, running);
      log.info(
        {
          run: job.run,
          group: job.group,
          member: job.member,
          attempt: attempt.attempt,
          task: attempt.taskId,
          wall_ms: Math.round(performance.now() - began),
          ...told,
        },
        'attempt',
      );
    } finally {
      attempts.end(running);
    }
  }

  /** Plays, and tells the ledger; what is returned goes on the log line. */
  async function settle(attempt: Attempt, run: KnownRun, running: Running): Promise<Record<string, unknown>> {
    let played: Played;
    try {
      played = await playMember(attempt, run, { driver, farmId: context.farmId, worker, running });
    } catch (error) {
      return await lost(attempt, running, error);
    }
    if (played.status === 'no_result') {
      // A box that is lost because the engine is: nobody's attempt, and the run waits for it.
      if (played.cause.startsWith('sandbox_') && !(await driver.answers()))
        return await lost(
          attempt,
          running,
          missingError('engine_silent', `the Docker engine does not answer: ${played.detail}`),
        );
      const ledgerSays = await ledger.fail(attempt, {
        cause: played.cause,
        detail: detailOf(played.detail),
        charged: true,
        delayMs: BACKOFF_MS[Math.min(attempt.attempt, BACKOFF_MS.length) - 1] as number,
        ...(played.signature === undefined ? {} : { signature: played.signature }),
      });
      return { status: 'no_result', cause: played.cause, detail: played.detail, ledger: ledgerSays };
    }
    const figures = {
      status: 'completed',
      reward: played.record.reward,
      steps: played.record.steps,
      seconds: played.record.seconds,
      start_ms: played.startMs,
      diagnostics: played.record.diagnostics,
    };
    if (!played.verify) return { ...figures, ledger: await ledger.accept(attempt, played.record, played.blobs) };
    const rolled = await ledger.rolled(attempt, JSON.stringify(played.record), played.blobs);
    if (rolled.status === 'rolled')
      await verifyQueue.add(attempt.run, [
        { group: attempt.group, member: attempt.member, stage: 'verify', next: rolled.next },
      ]);
    return { ...figures, ledger: rolled.status };
  }

  /** The attempt did not come to an end of its own: told to end, a part of the farm failed, or there is a bug. */
  async function lost(attempt: Attempt, running: Running, error: unknown): Promise<Record<string, unknown>> {
    const reason = running.signal.aborted ? running.signal.reason : error;
    if (reason instanceof AttemptEnded && reason.reason !== 'stop') return { status: 'ended', why: reason.reason };
    const detail = detailOf(messageOf(error));
    if (reason instanceof AttemptEnded) {
      await ledger.fail(attempt, { cause: 'environment_error', detail, charged: false, delayMs: 0 });
      return { status: 'given back', why: detail };
    }
    const pause = isFarmFault(error);
    const said = await ledger.fail(attempt, {
      cause: 'environment_error',
      detail,
      charged: !pause,
      delayMs: DEPENDENCY_DELAY_MS,
    });
    log.error({ run: attempt.run, error: detail }, pause ? 'a part of the farm failed' : 'an episode failed');
    // The store or the engine failed, not this member: the whole run waits instead of spending its attempts.
    if (pause) await new RunLedger(redis, attempt.run).setState('paused', detail);
    return { status: pause ? 'given back' : 'no_result', why: detail, ledger: said };
  }

  const consumer = consume(place, realm, 'rollout', context.concurrency, handle, (error) =>
    log.error({ error: messageOf(error) }, 'queue'),
  );

  const close = async (): Promise<void> => {
    clearInterval(sweeper);
    attempts.close();
    await presence.stop();
    await verifyQueue.close();
    await driver.close();
  };
  return {
    drain: async () => {
      await consumer.drain();
      await close();
    },
    stop: async () => {
      const closing = consumer.close();
      attempts.abortAll();
      while (attempts.count > 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await closing;
      await close();
    },
  };
}
