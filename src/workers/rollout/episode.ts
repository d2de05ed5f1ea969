// The episode loop: a policy acts in an environment until it is done, out of steps or out of actions, and everything
// that happened is recorded. What the action did is a step; what infrastructure or the task did is `no_result`, never
// a reward. An abort is thrown on as the signal's reason.

import { type Environment, EnvironmentError, type StepResult } from '../../shared/environment.ts';
import type { Value } from '../../shared/json/value.ts';
import { type Cause, type Diagnostic, detailOf } from '../../shared/outcome.ts';
import { BoxLost } from '../../shared/sandbox.ts';
import { FORMAT_VERSION, serializeTrajectory, type Trajectory } from '../../shared/trajectory.ts';
import type { Policy } from './policy.ts';

export interface EpisodeOptions {
  environment: Environment;
  /** An int, in every episode that the farm plans. */
  seed: Value;
  policy: Policy;
  maxSteps: number;
  signal: AbortSignal;
  /** How an earlier attempt's box died: the same death again is the action's own doing. */
  knownSignature: string | null;
}

export type Episode =
  | {
      status: 'completed';
      trajectory: Trajectory;
      /** The trajectory as it is saved. */
      bytes: Buffer;
      totalReward: number;
      steps: number;
      /** Each kind once, in the order in which they first befell an action. */
      diagnostics: Diagnostic[];
      lastAction: Value;
    }
  | { status: 'no_result'; cause: Cause; detail: string; signature?: string };

export async function runEpisode(options: EpisodeOptions): Promise<Episode> {
  const { environment, signal } = options;
  try {
    return await play(options);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BoxLost) {
      const cause = error.phase === 'start' ? 'sandbox_start' : 'sandbox_lost';
      return { status: 'no_result', cause, detail: detailOf(error.message), signature: error.signature };
    }
    if (error instanceof EnvironmentError) {
      return {
        status: 'no_result',
        cause: 'environment_error',
        detail: detailOf(`${environment.name}: ${error.message}`),
      };
    }
    throw error;
  }
}

async function play({ environment, seed, policy, maxSteps, signal, knownSignature }: EpisodeOptions): Promise<Episode> {
  signal.throwIfAborted();
  let observation = await environment.reset(seed);
  const trajectory: Trajectory = {
    version: FORMAT_VERSION,
    envId: environment.name,
    seed,
    initialObservation: observation,
    envConfig: environment.config(),
    transitions: [],
    totalReward: 0,
    finalObservation: undefined,
  };
  const diagnostics = new Set<Diagnostic>();
  let total = 0;
  let lastAction: Value = null;
  while (trajectory.transitions.length < maxSteps) {
    const turn = await policy.act(observation, signal);
    signal.throwIfAborted();
    if ('end' in turn) break;
    lastAction = turn.action;
    const result = await stepOrLoss(environment, turn.action, knownSignature);
    signal.throwIfAborted();
    trajectory.transitions.push({
      observation,
      action: turn.action,
      reward: result.reward,
      done: result.done,
      info: result.info,
      digest: environment.digest(),
    });
    total += result.reward;
    for (const diagnostic of result.diagnostics) diagnostics.add(diagnostic);
    observation = result.observation;
    if (result.done) break;
  }
  const steps = trajectory.transitions.length;
  if (steps === 0) {
    return { status: 'no_result', cause: 'policy_rejected', detail: 'the policy ended without a single action' };
  }
  trajectory.totalReward = total;
  trajectory.finalObservation = observation;
  const bytes = serializeTrajectory(trajectory);
  return {
    status: 'completed',
    trajectory,
    bytes,
    totalReward: total,
    steps,
    diagnostics: [...diagnostics],
    lastAction,
  };
}

/** One step; a box that died under the action, or died as it did once before, makes it a recorded miss. */
export async function stepOrLoss(
  environment: Environment,
  action: Value,
  knownSignature: string | null,
): Promise<StepResult> {
  try {
    return await environment.step(action);
  } catch (error) {
    if (!(error instanceof BoxLost) || error.phase === 'start') throw error;
    if (error.blame === 'action' || error.signature === knownSignature) return environment.lostBox(error);
    throw error;
  }
}
