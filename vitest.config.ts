import { defineConfig } from 'vitest/config';

// Two suites: `fast` needs Redis only (about a minute), `slow` needs the Docker engine, whole commands, or many processes.
export default defineConfig({
  test: {
    // Most of the fast suite waits (for leases, graces, servers): more files at once than there are cores.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'fast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/**/*.slow.test.ts', 'test/**/*.runtime.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'slow',
          include: ['test/**/*.slow.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
