// An engine with remapped users: root in a box, which the runner is, is nobody outside. What boxes keep there as everywhere is said by
// files of the suite, which `npm run test:runtimes -- userns` runs beside this one.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { engineReport } from '../../src/cli/engine-report.ts';
import type { Box } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { LABELS, LIMITS, run } from '../workers/sandbox-contract.ts';

const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();
const driver = createDockerDriver({ dockerHost: null });
const labels = { ...LABELS, farm: `${LABELS.farm}-userns` };
let box: Box;

beforeAll(async () => {
  await driver.prepare(LIMITS.image);
  box = await driver.open(LIMITS, labels, new AbortController().signal);
});
afterAll(() => driver.close());

test('doctor says that users are remapped', async () => {
  expect(await engineReport()).toContain('userns-remap on');
});

test('the runner is root in its box and an ordinary user outside', async () => {
  const id = await docker('ps', '-q', '--filter', `label=rollout-farm.farm=${labels.farm}`);
  const pid = await docker('inspect', '--format', '{{.State.Pid}}', id);
  const [inside, outside] = readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/\s+/).map(Number);
  expect(inside).toBe(0);
  expect(outside).toBeGreaterThan(10_000);
  const uidOf = (status: string) => Number(/^Uid:\t(\d+)/m.exec(status)?.[1]);
  expect(uidOf(readFileSync(`/proc/${pid}/status`, 'utf8'))).toBe(outside);
  expect(uidOf((await run(box, ['cat', '/proc/1/status'])).stdout.toString())).toBe(0);
});
