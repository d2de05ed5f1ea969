// A box for one episode played by a command itself, without a run: `rollout` and `replay`.
import { missingError } from '../shared/errors.js';
import { BoxLost, DEFAULT_LIMITS } from '../shared/sandbox.js';
import { makeEnvironment } from '../workers/rollout/environments/registry.js';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.js';
import { createOwnPool, ownWorker } from '../workers/rollout/sandbox/own-pool.js';
import { createSubprocessDriver } from '../workers/rollout/sandbox/subprocess.js';
export class EpisodeBoxes {
    driver;
    worker = ownWorker('command');
    limits;
    prepared = null;
    open = new Set();
    constructor(config, kind, limits = {}) {
        const driver = kind === 'docker' ? createDockerDriver({ dockerHost: config.dockerHost }) : createSubprocessDriver();
        this.driver = createOwnPool(driver, 'command');
        this.limits = { ...DEFAULT_LIMITS, ...limits };
    }
    /** An environment whose box is opened when it asks for one. A box that cannot be had is exit 3. */
    environment(name, config, signal) {
        let box = null;
        const context = {
            box: () => {
                box ??= this.openBox(signal);
                return box;
            },
            stepTimeoutMs: this.limits.timeoutMs,
            outputBytes: this.limits.outputBytes,
            signal,
        };
        return makeEnvironment(name, config, context);
    }
    async openBox(signal) {
        this.prepared ??= this.driver.prepare(this.limits.image);
        await this.prepared;
        try {
            const box = await this.driver.open(this.limits, { farm: 'command', worker: this.worker }, signal);
            this.open.add(box);
            return box;
        }
        catch (error) {
            if (error instanceof BoxLost)
                throw missingError('sandbox_start', `no sandbox could be started: ${error.message}`, './farm doctor tells what is missing', error);
            throw error;
        }
    }
    /** Ends the boxes opened so far. */
    async closeBoxes() {
        for (const box of this.open)
            await box.close();
        this.open.clear();
    }
    async close() {
        await this.closeBoxes();
        await this.driver.close();
    }
}
