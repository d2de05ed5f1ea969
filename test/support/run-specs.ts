// Specs for whole commands: one that is over at once and needs no sandbox, one of real commands that takes its time.

import type { TestFarm } from './farm.ts';
import { guessTasks } from './spec.ts';

/** 12 groups of 4, no sandbox. */
export function quickSpec(farm: TestFarm, change: Record<string, unknown> = {}): string {
  return farm.file('quick.json', {
    name: 'quick',
    seed: 7,
    group_size: 4,
    tasks: guessTasks(12),
    policy: { kind: 'scripted', actions: [4, 2, 6, 1] },
    ...change,
  });
}

/** Each member is a command in a box of its own that takes `seconds`, or, by a policy of its own, at most so long. */
export function slowSpec(
  farm: TestFarm,
  {
    groups = 8,
    size = 4,
    seconds = 0.5,
    policy,
  }: { groups?: number; size?: number; seconds?: number; policy?: object } = {},
): string {
  const code = `import time; time.sleep(${seconds}); print("hello")`;
  return farm.file('slow.json', {
    name: 'slow',
    seed: 7,
    group_size: size,
    tasks: Array.from({ length: groups }, (_, i) => ({
      id: `c${i}`,
      env: 'command',
      config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 30 + seconds },
    })),
    policy: policy ?? { kind: 'scripted', actions: [['python3', '-c', code]] },
    sandbox: { timeout_s: 60 + 2 * seconds },
  });
}
