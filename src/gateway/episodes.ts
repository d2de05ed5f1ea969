// Completions scored in sandboxes: each is one single-step episode in a fresh box of its own, a bounded number of them
// at once, in this process. A box that is lost is tried once more elsewhere; the same death again is the action's own
// doing. What is not over by the deadline has no result. The engine is met only when a box is first asked for.

import type { Environment } from '../shared/environment.ts';
import { FarmError, messageOf } from '../shared/errors.ts';
import type { Value } from '../shared/json/value.ts';
import { type Box, DEFAULT_LIMITS, type SandboxDriver } from '../shared/sandbox.ts';
import { makeEnvironment } from '../workers/rollout/environments/registry.ts';
import { type Episode, runEpisode } from '../workers/rollout/episode.ts';
import { completionPolicy } from '../workers/rollout/policies/completions.ts';
import { Admission } from './admission.ts';
import { linked } from './linked.ts';
import { noResult, type Outcome } from './outcome.ts';
import type { Patience } from './score.ts';
import type { AskedEnvironment } from './score-request.ts';

export interface EpisodeOptions {
  openDriver: () => SandboxDriver;
  /** Boxes at once. */
  slots: number;
  /** On the boxes' labels. */
  worker: string;
}

export class Episodes {
  private readonly options: EpisodeOptions;
  private readonly slots: Admission;
  private driver: SandboxDriver | null = null;
  private prepared: Promise<unknown> | null = null;
  private readonly closing = new Set<Promise<void>>();

  constructor(options: EpisodeOptions) {
    this.options = options;
    this.slots = new Admission(options.slots);
  }

  get inside(): number {
    return this.slots.inside;
  }

  /** One outcome a completion, in order; by the deadline. */
  score(environment: AskedEnvironment, completions: readonly Value[], patience: Patience): Promise<Outcome[]> {
    const { signal, release } = linked([patience.signal], patience.until - performance.now());
    return Promise.all(completions.map((completion) => this.one(environment, completion, signal))).finally(release);
  }

  private async one(environment: AskedEnvironment, completion: Value, signal: AbortSignal): Promise<Outcome> {
    try {
      await this.slots.take(1, signal);
    } catch {
      return noResult('not_started', 'no sandbox was free before the deadline');
    }
    // The slot is held until the box is gone, the answer waits only for the deadline.
    const over = this.play(environment, completion, signal).finally(() => this.slots.give(1));
    const told = over.catch((error: unknown): Outcome => {
      if (signal.aborted) return noResult('environment_silent', 'the episode was not over by the deadline');
      return noResult('sandbox_start', error instanceof FarmError ? error.message : messageOf(error));
    });
    const closing = told.then(() => {});
    this.closing.add(closing);
    void closing.then(() => this.closing.delete(closing));
    return await Promise.race([told, whenAborted(signal)]);
  }

  private async play(environment: AskedEnvironment, completion: Value, signal: AbortSignal): Promise<Outcome> {
    const first = await this.episode(environment, completion, signal, null);
    const again = first.status === 'no_result' && (first.cause === 'sandbox_start' || first.cause === 'sandbox_lost');
    const episode = again ? await this.episode(environment, completion, signal, first.signature ?? null) : first;
    if (episode.status === 'no_result') return noResult(episode.cause, episode.detail);
    const { totalReward, steps, diagnostics } = episode;
    if (!Number.isFinite(totalReward)) return noResult('environment_error', 'the reward is not a finite number');
    return {
      status: 'completed',
      reward: totalReward,
      more: new Map<string, Value>([
        ['components', new Map([['env', totalReward]])],
        ['steps', BigInt(steps)],
        ['diagnostics', [...diagnostics]],
      ]),
    };
  }

  private async episode(
    asked: AskedEnvironment,
    completion: Value,
    signal: AbortSignal,
    known: string | null,
  ): Promise<Episode> {
    let box: Promise<Box> | null = null;
    const environment: Environment = makeEnvironment(asked.name, asked.config, {
      box: () => {
        box ??= this.openBox(signal);
        return box;
      },
      stepTimeoutMs: DEFAULT_LIMITS.timeoutMs,
      outputBytes: DEFAULT_LIMITS.outputBytes,
      signal,
    });
    try {
      return await runEpisode({
        environment,
        seed: asked.seed,
        policy: completionPolicy(completion, environment),
        maxSteps: 1,
        signal,
        knownSignature: known,
      });
    } finally {
      await (box as Promise<Box> | null)?.then(
        (opened) => opened.close(),
        () => {},
      );
    }
  }

  private async openBox(signal: AbortSignal): Promise<Box> {
    this.driver ??= this.options.openDriver();
    const { driver } = this;
    this.prepared ??= driver.prepare(DEFAULT_LIMITS.image);
    try {
      await this.prepared;
    } catch (error) {
      // The engine may be there the next time.
      this.prepared = null;
      throw error;
    }
    // No farm's label: boxes of a gateway end with its channel, and no worker of the farm may sweep them before.
    return await driver.open(DEFAULT_LIMITS, { farm: 'gateway', worker: this.options.worker }, signal);
  }

  /** Waits until every box is gone. */
  async close(): Promise<void> {
    await Promise.all([...this.closing]);
    await this.driver?.close();
  }
}

function whenAborted(signal: AbortSignal): Promise<Outcome> {
  const late = (): Outcome => noResult('environment_silent', 'the episode was not over by the deadline');
  if (signal.aborted) return Promise.resolve(late());
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(late()), { once: true }));
}
