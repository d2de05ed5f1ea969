// What the workers of both stages have in common: take a job, begin an attempt if the ledger allows it, keep its lease
// while the stage works on it, write one wide line, and go away drained or at once. What the stage does is its own.

import { messageOf } from '../shared/errors.ts';
import { MEMBER_LANES, type MemberLane } from '../shared/lane.ts';
import { type Attempt, type Company, MemberLedger, type Stage } from '../shared/ledger/member-ledger.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { fingerprint } from '../shared/ledger/run-settings.ts';
import { type Cause, detailOf } from '../shared/outcome.ts';
import { announce } from '../shared/presence.ts';
import { consume, ELSEWHERE, type MemberJob } from '../shared/queue.ts';
import { AttemptEnded, Attempts, type Running } from './attempts.ts';
import { type Begun, Companies } from './company.ts';
import { isFarmFault } from './farm-fault.ts';
import { LaneSlots } from './lane-slots.ts';
import type { Role, RoleContext } from './role.ts';
import { type KnownRun, Runs } from './runs.ts';

/** A part of the farm that fails (store, engine, Redis) gives members back; they are due again after this. */
const DEPENDENCY_DELAY_MS = 2_000;
const AGAIN_MS = 10_000;

/** What goes on the wide line. */
export type Told = Record<string, unknown>;

interface MemberKey {
  group: number;
  member: number;
}

export interface StageWork {
  stage: Stage;
  /** Name of the wide line, and the first phase of an attempt. */
  line: string;
  phase: string;
  /** The cause of an attempt that failed in a way that nobody foresaw. */
  failure: Cause;
  /** Why this worker must not begin the run's members of that lane; null if it may. */
  refusal?(run: string, known: KnownRun, lane: MemberLane): Promise<string | null>;
  /** Does the stage's work and tells the ledger. Throws when the attempt was told to end, or a part of the farm failed. */
  perform(attempt: Attempt, run: KnownRun, running: Running, ledger: MemberLedger): Promise<Told>;
  /** Lets go of what `perform` waits for, before the attempts are awaited. */
  interrupt?(): void;
  close(): Promise<void>;
}

/** A stage's role, and how its process tells of what works in it beside members. */
export interface StageRole extends Role {
  guest(): Promise<() => void>;
}

export async function startStageWorker(context: RoleContext, work: StageWork): Promise<StageRole> {
  const { redis, place, realm, worker, slots, log } = context;
  const ledger = new MemberLedger(redis, worker);
  const attempts = new Attempts(ledger);
  const companies = new Companies(ledger);
  const runs = new Runs(redis, context.config, log);
  const key = fingerprint(context.config.ambertraceApiKey);
  const presence = await announce(redis, { role: work.stage, realm, worker, slots, key });

  /** Told once in a while: what is left alone comes by again. */
  const toldAt = new Map<string, number>();
  const leaveAlone = (run: string, why: string): void => {
    if (performance.now() - (toldAt.get(run) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    toldAt.set(run, performance.now());
    log.warn({ run, why }, 'members left alone');
  };

  async function handle(job: MemberJob, lane: MemberLane, at: LaneSlots): Promise<typeof ELSEWHERE | undefined> {
    const run = await runs.get(job.run);
    if ('refused' in run) {
      leaveAlone(job.run, run.refused);
      return run.othersMay ? ELSEWHERE : undefined;
    }
    const why = await work.refusal?.(job.run, run, lane);
    if (why) {
      leaveAlone(job.run, why);
      return ELSEWHERE;
    }
    const suspects: MemberKey[] = [];
    const beginning = (members: readonly MemberKey[]) => (company: Company) =>
      ledger.beginAll(job.run, members, work.stage, company);
    const playing =
      (members: readonly MemberKey[], toCome: { count: number }) =>
      async (begun: Begun): Promise<void> => {
        const played = begun.map((attempt, i) => {
          if (!('refused' in attempt)) {
            // Its lease runs from now on, also while it waits for its slot.
            const running = attempts.start(attempt, lane, 'waiting for a slot');
            return at.work((leave) => {
              toCome.count--;
              at.passed(1);
              return perform(attempt, run, Object.assign(running, { phase: work.phase, leave }));
            });
          }
          const member = members[i] as MemberKey;
          if (attempt.refused === 'suspect') suspects.push(member);
          return log.debug({ run: job.run, ...member, why: attempt.refused }, 'not begun');
        });
        // One that throws is a bug, and must not take the others' slots.
        for (const end of await Promise.allSettled(played)) if (end.status === 'rejected') throw end.reason;
      };
    const members = job.members.map(([group, member]) => ({ group, member }));
    const toCome = { count: members.length };
    await at.enter(members.length);
    try {
      await companies.among(members.length, beginning(members), playing(members, toCome));
    } finally {
      at.passed(toCome.count);
    }
    for (const suspect of suspects.splice(0)) {
      log.info({ run: job.run, ...suspect }, 'a worker died under this member: it waits to be alone here');
      // Whoever has entered may wait for it to end.
      at.passed(-1);
      const alone = { count: 1 };
      await companies.alone(beginning([suspect]), playing([suspect], alone)).finally(() => at.passed(alone.count));
    }
    return undefined;
  }

  async function perform(attempt: Attempt, run: KnownRun, running: Running): Promise<void> {
    const began = performance.now();
    try {
      const told = await work
        .perform(attempt, run, running, ledger)
        .catch((error: unknown) => lost(attempt, running, error));
      if (log.isLevelEnabled('info')) {
        const { run: of, group, member, taskId } = attempt;
        const who = { run: of, group, member, attempt: attempt.attempt, task: taskId };
        log.info({ ...who, wall_ms: Math.round(performance.now() - began), ...told }, work.line);
      }
    } finally {
      attempts.end(running);
    }
    await running.after;
  }

  /** The attempt did not come to an end of its own: told to end, a part of the farm failed, or there is a bug. */
  async function lost(attempt: Attempt, running: Running, error: unknown): Promise<Told> {
    const reason: unknown = running.signal.aborted ? running.signal.reason : error;
    if (reason instanceof AttemptEnded && reason.reason !== 'stop') return { status: 'ended', why: reason.reason };
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
    if (pause) await new RunLedger(redis, attempt.run).setState('paused', detail);
    return { status: stopped || pause ? 'given back' : 'failed', why: detail, ledger: said };
  }

  // Slots of a lane are its own: a slot that is free in one takes nothing of another.
  const consumers = MEMBER_LANES.flatMap((lane) => {
    const at = slots[lane] ?? 0;
    const onError = (error: unknown): void => log.error({ lane, error: messageOf(error) }, 'queue');
    const seats = new LaneSlots(at);
    return at === 0 ? [] : [consume(place, realm, lane, at, (job) => handle(job, lane, seats), onError)];
  });
  const close = async (): Promise<void> => {
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
