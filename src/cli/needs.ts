// What a command needs of the machine, found out before anything starts.

import type { Config } from '../shared/config.ts';
import { FarmError, missingError } from '../shared/errors.ts';
import type { MemberLane } from '../shared/lane.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';

export const NO_ENGINE = 'docker_unreachable';

/**
 * Throws FarmError (exit 3) unless the engine answers, has the runtime, and `image` is ready for boxes. `instead`: slots
 * of workers elsewhere with which no engine would be needed here; `holding`: what else those would have to have.
 */
export async function requireSandbox(
  config: Config,
  image: string,
  runtime: string | null = null,
  instead: readonly MemberLane[] = [],
  holding = '',
): Promise<void> {
  const driver = createDockerDriver({ dockerHost: config.dockerHost });
  try {
    await driver.prepare(image, runtime);
  } catch (error) {
    if (instead.length === 0 || !(error instanceof FarmError && error.code === NO_ENGINE)) throw error;
    const lacking = instead.map((lane) =>
      lane === 'verify' ? './farm worker verify' : './farm worker rollout on a machine that has an engine',
    );
    const redis = config.redisUrl === null ? 'a Redis that REDIS_URL names here and there' : 'this Redis';
    const hint = `${error.hint}; or start ${[...new Set(lacking)].join(' and ')}, with ${redis}${holding}`;
    throw missingError(error.code, error.message, hint, error);
  } finally {
    await driver.close();
  }
}
