// A box for one episode played by a command itself, without a run: `rollout` and `replay`.

import type { Config } from '../shared/config.ts';
import type { Environment, EnvironmentContext } from '../shared/environment.ts';
import { missingError } from '../shared/errors.ts';
import type { ValueMap } from '../shared/json/value.ts';
import { type Box, BoxLost, DEFAULT_LIMITS, type SandboxDriver, type SandboxLimits } from '../shared/sandbox.ts';
import { unlessAborted } from '../shared/within.ts';
import { makeEnvironment } from '../workers/rollout/environments/registry.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';
import { createOwnPool, ownWorker } from '../workers/rollout/sandbox/own-pool.ts';
import { createSubprocessDriver } from '../workers/rollout/sandbox/subprocess.ts';

export class EpisodeBoxes {
  private readonly driver: SandboxDriver;
  private readonly worker = ownWorker('command');
  private readonly limits: SandboxLimits;
  private prepared: Promise<unknown> | null = null;
  private readonly open = new Set<Box>();

  constructor(config: Config, kind: 'docker' | 'subprocess', limits: Partial<SandboxLimits> = {}) {
    const driver = kind === 'docker' ? createDockerDriver({ dockerHost: config.dockerHost }) : createSubprocessDriver();
    this.driver = createOwnPool(driver, 'command');
    this.limits = { ...DEFAULT_LIMITS, ...limits };
  }

  /** An environment whose box is opened when it asks for one. A box that cannot be had is exit 3. */
  environment(name: string, config: ValueMap, signal: AbortSignal): Environment {
    let box: Promise<Box> | null = null;
    const context: EnvironmentContext = {
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

  private async openBox(signal: AbortSignal): Promise<Box> {
    this.prepared ??= this.driver.prepare(this.limits.image);
    await unlessAborted(signal, this.prepared);
    try {
      const box = await this.driver.open(this.limits, { farm: 'command', worker: this.worker }, signal);
      this.open.add(box);
      return box;
    } catch (error) {
      if (error instanceof BoxLost)
        throw missingError(
          'sandbox_start',
          `no sandbox could be started: ${error.message}`,
          './farm doctor tells what is missing',
          error,
        );
      throw error;
    }
  }

  /** Ends the boxes opened so far. */
  async closeBoxes(): Promise<void> {
    for (const box of this.open) await box.close();
    this.open.clear();
  }

  async close(): Promise<void> {
    await this.closeBoxes();
    await this.driver.close();
  }
}
