// Boxes for reference episodes: plain folders, because the cases are ours and no hostile code. One box a case, opened
// when the environment asks for it.

import type { EnvironmentContext } from '../../src/shared/environment.ts';
import { type Box, DEFAULT_LIMITS } from '../../src/shared/sandbox.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';

const LIMITS = { ...DEFAULT_LIMITS, image: 'none' };

export class EpisodeBoxes {
  private readonly driver = createSubprocessDriver();

  /** Runs `work` with a context whose box is closed afterwards. */
  async within<T>(work: (context: () => EnvironmentContext) => Promise<T>): Promise<T> {
    const opened: Promise<Box>[] = [];
    const { signal } = new AbortController();
    const context = (): EnvironmentContext => {
      let box: Promise<Box> | null = null;
      const open = (): Promise<Box> => {
        if (!box) {
          box = this.driver.open(LIMITS, { farm: 'vectors', worker: 'vectors' }, signal);
          opened.push(box);
        }
        return box;
      };
      return { box: open, stepTimeoutMs: LIMITS.timeoutMs, outputBytes: LIMITS.outputBytes, signal };
    };
    try {
      return await work(context);
    } finally {
      await Promise.all(opened.map(async (box) => (await box).close()));
    }
  }

  close(): Promise<void> {
    return this.driver.close();
  }
}
