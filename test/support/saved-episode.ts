// Trajectories for tests that play no episode: what a worker would have saved, with the total that a test wants.

import { mapOf, type ValueMap } from '../../src/shared/json/value.ts';
import { FORMAT_VERSION, serializeTrajectory } from '../../src/shared/trajectory.ts';

export interface SavedEpisode {
  seed: bigint;
  /** As resolved. */
  config: ValueMap;
  total: number;
  steps?: number;
  action?: bigint;
  /** Tells the content apart from others, and makes it large. */
  noise?: string;
}

/** A saved trajectory of `guess`. Its last step earns all of the total. */
export function savedEpisode({ seed, config, total, steps = 1, action = 4n, noise = '' }: SavedEpisode): Buffer {
  const observation = mapOf({ feedback: 'start' });
  return serializeTrajectory({
    version: FORMAT_VERSION,
    envId: 'guess',
    seed,
    initialObservation: observation,
    envConfig: config,
    transitions: Array.from({ length: steps }, (_, i) => ({
      observation,
      action,
      reward: i === steps - 1 ? total : 0,
      done: i === steps - 1,
      info: mapOf({ noise }),
      digest: '',
    })),
    totalReward: total,
    finalObservation: mapOf({ feedback: 'correct' }),
  });
}
