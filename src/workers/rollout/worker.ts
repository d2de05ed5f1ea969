// The rollout worker: plays a member's episode and has the outcome accepted, or hands it on to the verifier. What goes
// wrong is told to the ledger, which alone decides whether there is another try.

import { messageOf, missingError } from '../../shared/errors.ts';
import type { Attempt, MemberLedger } from '../../shared/ledger/member-ledger.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { detailOf } from '../../shared/outcome.ts';
import type { SandboxDriver } from '../../shared/sandbox.ts';
import type { Running } from '../attempts.ts';
import type { Role, RoleContext } from '../role.ts';
import type { KnownRun } from '../runs.ts';
import { startStageWorker, type Told } from '../stage-worker.ts';
import { Closings } from './closing.ts';
import { EngineWatch } from './engine-watch.ts';
import { InteractiveWorker } from './interactive.ts';
import { type Played, playMember } from './play.ts';
import { VersionPins } from './version-pins.ts';

const SWEEP_MS = 20_000;
/** Before the second and the third attempt. */
const BACKOFF_MS = [500, 2_000] as const;

export async function startRolloutWorker(
  context: RoleContext,
  driver: SandboxDriver,
  alive: () => Promise<ReadonlySet<string>>,
): Promise<Role> {
  const { worker, log, farmId } = context;

  /** Containers of workers that are not there any more. */
  const sweep = async (): Promise<void> => {
    try {
      const workers = await alive();
      const swept = await driver.sweep(farmId, (w) => w === worker || workers.has(w));
      if (swept > 0) log.warn({ swept }, 'removed containers without an owner');
    } catch (error) {
      log.debug({ error: messageOf(error) }, 'could not sweep');
    }
  };
  void sweep();
  const sweeper = setInterval(() => void sweep(), SWEEP_MS);

  const watch = new EngineWatch(driver, log, (run, reason) =>
    new RunLedger(context.redis, run).setState('paused', reason),
  );
  const { interactive: reserved = 0, rollout = 0 } = context.slots;
  const closings = new Closings(rollout, log, () => role.guest());
  const pins = new VersionPins(context, driver);
  /** Slots for sandboxed members that are taken: light ones have slots of their own. */
  let atWork = 0;

  async function perform(attempt: Attempt, run: KnownRun, running: Running, ledger: MemberLedger): Promise<Told> {
    const engine = watch.begin(attempt.run);
    const boxed = running.lane === 'rollout' ? 1 : 0;
    atWork += boxed;
    const closing = (closed: Promise<void>): void => {
      running.after = closings.keep(`${attempt.run} ${attempt.group}-${attempt.member}`, closed);
    };
    const played = await playMember(attempt, run, { driver, farmId, worker, running, closing }).finally(() => {
      engine.end();
      if (boxed === 0) return;
      void (running.after ?? Promise.resolve()).then(() => {
        atWork -= boxed;
      });
    });
    // Its episode is over, and no box of its own closes: what is left is the ledger's answer.
    if (boxed === 0) running.leave();
    const lost =
      played.status === 'no_result' ? played.cause.startsWith('sandbox_') : played.record.diagnostics.length > 0;
    if (lost && engine.wasSilent())
      throw missingError('engine_silent', 'the Docker engine did not answer while the episode was at work');
    if (played.status === 'no_result') return await without(played, attempt, ledger);
    const { record, blobs } = played;
    const { reward, steps, seconds, diagnostics } = record;
    const told = { status: 'completed', reward, steps, seconds, start_ms: played.startMs, diagnostics };
    if (!played.verify) return { ...told, ledger: await ledger.accept(attempt, record, blobs) };
    return { ...told, ledger: await ledger.rolled(attempt, JSON.stringify(record), blobs) };
  }

  async function without(
    played: Extract<Played, { status: 'no_result' }>,
    attempt: Attempt,
    ledger: MemberLedger,
  ): Promise<Told> {
    const { cause, detail, signature } = played;
    // A box that is lost because the engine is: nobody's attempt, and the run waits for it.
    if (cause.startsWith('sandbox_') && !(await driver.answers())) {
      throw missingError('engine_silent', `the Docker engine does not answer: ${detail}`);
    }
    const said = await ledger.fail(attempt, {
      cause,
      detail: detailOf(detail),
      charged: true,
      delayMs: BACKOFF_MS[Math.min(attempt.attempt, BACKOFF_MS.length) - 1] as number,
      ...(signature === undefined ? {} : { signature }),
    });
    return { status: 'no_result', cause, detail, ledger: said };
  }

  const role = await startStageWorker(context, {
    stage: 'rollout',
    line: 'attempt',
    phase: 'reading the task',
    failure: 'environment_error',
    refusal: async (run, { settings }, lane) => (lane === 'rollout' ? pins.refusal(run, settings) : null),
    perform,
    close: async () => {
      clearInterval(sweeper);
      watch.close();
    },
  });
  // Slots of its own, and those that runs leave idle; runs never wait for it.
  const slots = (): number => reserved + Math.max(0, rollout - atWork);
  const interactive = reserved === 0 ? null : new InteractiveWorker({ context, driver, slots, enter: role.guest });
  const ended = async (how: 'drain' | 'stop'): Promise<void> => {
    await Promise.all([role[how](), interactive?.[how]()]);
    await closings.settled();
    await driver.close();
  };
  return { drain: () => ended('drain'), stop: () => ended('stop') };
}
