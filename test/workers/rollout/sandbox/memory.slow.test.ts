// Memory and processes of a box: what can be written fits beside the runner, and no bound is one of the host's user.

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SandboxLimits } from '../../../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../../../src/workers/rollout/sandbox/docker.ts';
import { askEngine, containersOf } from '../../../support/outside.ts';
import { until } from '../../../support/until.ts';
import { LABELS, LIMITS, python, run } from '../../sandbox-contract.ts';

describe('the memory of a box', () => {
  const driver = createDockerDriver({ dockerHost: null });
  const farm = `${LABELS.farm}-memory`;
  const open = (over: Partial<SandboxLimits>) =>
    driver.open({ ...LIMITS, ...over }, { ...LABELS, farm }, new AbortController().signal);
  const pidOf = async (container: string) =>
    (await askEngine<{ State: { Pid: number } }>(`/containers/${container}/json`)).State.Pid;

  beforeAll(() => driver.prepare(LIMITS.image));
  afterAll(() => driver.close());

  test.each([
    [64, 1],
    [128, 64],
    [256, 64],
    [1024, 900],
  ])('of %i MB holds its writable folders of %i MB, all full, and the runner', async (memoryMb, tmpfsMb) => {
    const box = await open({ memoryMb, tmpfsMb });
    const pid = await pidOf((await containersOf(farm))[0] as string);
    const sizes = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
      .split('\n')
      .filter((line) => / - tmpfs .* rw,/.test(line) && / (\/work|\/tmp|\/dev\/shm|\/judge|\/farm) /.test(line));
    expect(sizes.length).toBeGreaterThanOrEqual(3);
    let sum = 0;
    for (const line of sizes) {
      const [, size] = /[ ,]size=(\d+)k/.exec(line) ?? [];
      expect(line).toMatch(/nr_inodes=\d+/);
      sum += Number(size);
    }
    expect(sum + 48 * 1024).toBeLessThanOrEqual(memoryMb * 1024);
    const fill = `
for folder in ('/work', '/tmp', '/dev/shm'):
    for i in range(64):
        try:
            with open(f'{folder}/{i}', 'wb', 0) as f:
                while True: f.write(b'0' * 65536)
        except OSError: pass`;
    expect(await python(box, fill, { timeoutMs: 60_000 })).toMatchObject({
      cause: 'exit',
      exitCode: 0,
      oomKilled: false,
    });
    expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
    await box.reset();
    await box.close();
  });

  test('bounds processes by the box and never by the user, whom a neighbour may share', async () => {
    const box = await open({});
    const [container] = await containersOf(farm);
    const pid = await pidOf(container as string);
    const sleeping = run(box, ['sleep', '30']);
    sleeping.catch(() => {});
    const limit = (of: string) => /^Max processes .*/m.exec(readFileSync(`/proc/${of}/limits`, 'utf8'))?.[0];
    const child = await until('the command runs', () =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim(),
    );
    expect(limit(child)).toBe(limit(String(pid)));
    expect(Number(readFileSync(`/proc/${child}/oom_score_adj`, 'utf8'))).toBe(1000);
    await box.close();
  });
});
