// What a command needs of the machine, found out before anything starts.

import type { Config } from '../shared/config.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';

/** Throws FarmError (exit 3) unless the engine answers, has the runtime, and `image` is ready for boxes. */
export async function requireSandbox(config: Config, image: string, runtime: string | null = null): Promise<void> {
  const driver = createDockerDriver({ dockerHost: config.dockerHost });
  try {
    await driver.prepare(image, runtime);
  } finally {
    await driver.close();
  }
}
