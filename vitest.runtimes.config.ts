import { defineConfig } from 'vitest/config';

const ONE_AFTER_ANOTHER = { testTimeout: 180_000, hookTimeout: 180_000, fileParallelism: false };

// What needs an engine that is set up otherwise (docs/sandbox.md): not part of the suite; test/runtimes/run.sh starts such engines.
export default defineConfig({
  test: {
    projects: [
      { test: { name: 'gvisor', include: ['test/runtimes/gvisor.runtime.test.ts'], ...ONE_AFTER_ANOTHER } },
      {
        test: {
          name: 'userns',
          include: [
            'test/runtimes/userns.runtime.test.ts',
            'test/workers/sandbox-*.slow.test.ts',
            'test/workers/rollout/sandbox/reset-proof.slow.test.ts',
          ],
          // makes its image with packages from the network, which is not there
          exclude: ['test/workers/sandbox-pytest.slow.test.ts'],
          ...ONE_AFTER_ANOTHER,
        },
      },
    ],
  },
});
