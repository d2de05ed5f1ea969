// What a command needs of the machine, found out before anything starts.
import { createDockerDriver } from '../workers/rollout/sandbox/docker.js';
/** Throws FarmError (exit 3) unless the engine answers, has the runtime, and `image` is ready for boxes. */
export async function requireSandbox(config, image, runtime = null) {
    const driver = createDockerDriver({ dockerHost: config.dockerHost });
    try {
        await driver.prepare(image, runtime);
    }
    finally {
        await driver.close();
    }
}
