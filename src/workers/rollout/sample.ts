// One completion scored in an environment, as a single-step episode in a fresh box of its own: what the interactive lane
// and a gateway without workers have in common. An abort is thrown on as the signal's reason.

import type { AskedEnvironment, SampleOutcome } from '../../shared/interactive/sample-outcome.ts';
import type { Value } from '../../shared/json/value.ts';
import { type Box, DEFAULT_LIMITS } from '../../shared/sandbox.ts';
import { makeEnvironment } from './environments/registry.ts';
import { runEpisode } from './episode.ts';
import { completionPolicy } from './policies/completions.ts';

/** `signature`: the box was lost, and it may be tried once more. */
export interface PlayedSample {
  outcome: SampleOutcome;
  signature: string | null;
}

export async function playSample(
  asked: AskedEnvironment,
  completion: Value,
  context: { openBox: () => Promise<Box>; signal: AbortSignal; knownSignature: string | null },
): Promise<PlayedSample> {
  const { openBox, signal, knownSignature } = context;
  let box: Promise<Box> | null = null;
  try {
    const environment = makeEnvironment(asked.name, asked.config, {
      box: () => {
        box ??= openBox();
        return box;
      },
      stepTimeoutMs: DEFAULT_LIMITS.timeoutMs,
      outputBytes: DEFAULT_LIMITS.outputBytes,
      signal,
    });
    const policy = completionPolicy(completion, environment);
    const episode = await runEpisode({ environment, seed: asked.seed, policy, maxSteps: 1, signal, knownSignature });
    if (episode.status === 'no_result') {
      const { cause, detail } = episode;
      const lost = cause === 'sandbox_start' || cause === 'sandbox_lost';
      return { outcome: { status: 'no_result', cause, detail }, signature: lost ? (episode.signature ?? cause) : null };
    }
    const { totalReward, steps, diagnostics } = episode;
    if (!Number.isFinite(totalReward)) {
      const detail = 'the reward is not a finite number';
      return { outcome: { status: 'no_result', cause: 'environment_error', detail }, signature: null };
    }
    return { outcome: { status: 'completed', reward: totalReward, steps, diagnostics }, signature: null };
  } finally {
    await (box as Promise<Box> | null)?.then(
      (opened) => opened.close(),
      () => {},
    );
  }
}
