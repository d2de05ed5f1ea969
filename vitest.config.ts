import { defineConfig } from 'vitest/config';

// What is to happen is waited for, not timed: a machine that stands still for seconds is no failure.
const expect = { poll: { timeout: 20_000 } };

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
          testTimeout: 150_000,
          hookTimeout: 150_000,
          expect,
        },
      },
      {
        test: {
          name: 'slow',
          include: ['test/**/*.slow.test.ts'],
          testTimeout: 180_000,
          hookTimeout: 180_000,
          fileParallelism: false,
          expect,
        },
      },
    ],
  },
});
