import { defineConfig } from 'vitest/config';

// What needs an engine with gVisor (docs/sandbox.md): not part of the suite, and it fails where there is none.
export default defineConfig({
  test: {
    include: ['test/**/*.runtime.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
    fileParallelism: false,
  },
});
