// One member's episode from its plan document to its record: read what it needs, open a box when the environment asks
// for one, play, keep the trajectory by content, and say what the reward rests on.

import { isMap } from '../../shared/json/value.ts';
import type { Blob } from '../../shared/ledger/blob.ts';
import type { Attempt } from '../../shared/ledger/member-ledger.ts';
import type { Cause, Certificate, Completed } from '../../shared/outcome.ts';
import { readHeld } from '../../shared/plan/reader.ts';
import type { Box, SandboxDriver } from '../../shared/sandbox.ts';
import { ENVIRONMENT_CONFIGS } from '../../shared/spec/environment-config.ts';
import { putContent } from '../../shared/store/content.ts';
import type { Running } from '../attempts.ts';
import type { KnownRun } from '../runs.ts';
import { makeEnvironment } from './environments/registry.ts';
import { runEpisode } from './episode.ts';
import { givenPolicy } from './policies/given.ts';
import { END_MS, episodeMs, untilWall, WallDeadline } from './wall-deadline.ts';

export type Played =
  | { status: 'completed'; record: Completed; blobs: Blob[]; verify: boolean; startMs: number }
  | { status: 'no_result'; cause: Cause; detail: string; signature?: string };

export interface PlayContext {
  driver: SandboxDriver;
  farmId: string;
  worker: string;
  running: Running;
  /** Takes the end of a box: the outcome does not wait for it. */
  closing: (closed: Promise<void>) => void;
  /** For everything; default: the sum of what its parts may take. */
  wallMs?: number;
  /** For what is told to end, until it is left behind. */
  endMs?: number;
}

/** Throws when the attempt is told to end, or when store or engine fail; what the episode did is the answer. */
export async function playMember(attempt: Attempt, run: KnownRun, context: PlayContext): Promise<Played> {
  const { running, wallMs = episodeMs(run.settings), endMs = END_MS } = context;
  const { signal } = running;
  try {
    return await untilWall(wallMs, running.ending, () => play(attempt, run, context, signal), endMs);
  } catch (error) {
    const why: unknown = signal.aborted ? signal.reason : error;
    if (!(why instanceof WallDeadline)) throw why;
    return { status: 'no_result', cause: 'environment_silent', detail: `${why.message}, still ${running.phase}` };
  }
}

async function play(attempt: Attempt, run: KnownRun, context: PlayContext, signal: AbortSignal): Promise<Played> {
  const { settings, store } = run;
  const document = await run.documents.read(attempt.place);
  const kind = ENVIRONMENT_CONFIGS.get(document.env);
  const given = await readHeld(store, document.config);
  if (!kind || !isMap(given))
    return { status: 'no_result', cause: 'environment_error', detail: `unknown environment ${document.env}` };
  const play = document.plays[document.plays.length === 1 ? 0 : attempt.member];
  if (!play)
    return { status: 'no_result', cause: 'policy_rejected', detail: 'the plan has no actions for this member' };

  const began = performance.now();
  let opened: Promise<Box> | null = null;
  let startMs = 0;
  const box = (): Promise<Box> => {
    opened ??= openBox();
    return opened;
  };
  const openBox = async (): Promise<Box> => {
    context.running.phase = 'waiting for a box';
    const asked = performance.now();
    const { sandbox } = settings;
    const limits = {
      image: sandbox.image,
      memoryMb: sandbox.memoryMb,
      cpus: sandbox.cpus,
      pids: sandbox.pids,
      tmpfsMb: sandbox.tmpfsMb,
      network: sandbox.network,
      timeoutMs: sandbox.timeoutS * 1000,
      outputBytes: sandbox.outputKb * 1024,
      exec: sandbox.exec,
      runtime: sandbox.runtime,
      recycle: sandbox.isolation === 'recycled' ? `${attempt.run}/${settings.incarnation}` : null,
    };
    const labels = {
      farm: context.farmId,
      worker: context.worker,
      run: attempt.run,
      member: `${attempt.group}-${attempt.member}`,
    };
    try {
      return await context.driver.open(limits, labels, signal);
    } finally {
      startMs += performance.now() - asked;
      if (!signal.aborted) context.running.phase = 'playing';
    }
  };
  try {
    context.running.phase = 'playing';
    const environment = makeEnvironment(document.env, kind.resolve(given), {
      box,
      stepTimeoutMs: settings.sandbox.timeoutS * 1000,
      outputBytes: settings.sandbox.outputKb * 1024,
      signal,
    });
    const policy = await givenPolicy(play, (held) => readHeld(store, held), environment);
    const episode = await runEpisode({
      environment,
      seed: document.seed,
      policy,
      maxSteps: settings.maxSteps,
      signal,
      knownSignature: attempt.knownSignature,
    });
    signal.throwIfAborted();
    if (episode.status === 'no_result') return episode;
    const seconds = Math.max(0, performance.now() - began - startMs) / 1000;
    const usedBox = await (opened as Promise<Box> | null)?.catch(() => null);
    context.running.phase = 'storing the trajectory';
    const kept = await putContent(store, episode.bytes);
    const certificate: Certificate = {
      trajectory_sha256: kept.claim.sha256,
      env: document.env,
      image: usedBox?.imageId ?? null,
      runner: usedBox?.runnerHash ?? null,
      isolation: usedBox?.isolation ?? 'none',
      grade: environment.grade,
      ...(environment.warm ? { warm: environment.warm } : {}),
      reward: episode.totalReward,
      report_sha256: null,
    };
    const record: Completed = {
      member: attempt.member,
      status: 'completed',
      reward: episode.totalReward,
      components: document.env === 'text' ? {} : { env: episode.totalReward },
      attempts: attempt.attempt,
      steps: episode.steps,
      seconds: Number(seconds.toFixed(6)),
      diagnostics: episode.diagnostics,
      trajectory: kept.claim,
      certificate,
    };
    const blobs = kept.inline === null ? [] : [{ sha256: kept.claim.sha256, bytes: kept.inline }];
    return { status: 'completed', record, blobs, verify: document.verify, startMs: Math.round(startMs) };
  } finally {
    const closed = (opened as Promise<Box> | null)?.then(
      (b) => b.close(),
      () => {},
    );
    if (closed !== undefined) context.closing(closed);
  }
}
