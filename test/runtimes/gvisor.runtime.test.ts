// Boxes under a kernel of their own (gVisor): what holds there as everywhere, and what ends differently.
// `npm run test:runtimes -- gvisor`, on an engine of its own. FARM_TEST_RUNTIME: another runtime of the engine that this is run on.

import { execFile } from 'node:child_process';
import { release } from 'node:os';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Box, SandboxDriver } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { bytes, LABELS, LIMITS, python, run, sandboxContract } from '../workers/sandbox-contract.ts';
import { checkOf, DOUBLE, gradeContract, graded } from '../workers/sandbox-grade-contract.ts';

const RUNTIME = process.env.FARM_TEST_RUNTIME ?? 'runsc';
/** A process costs 0.1 to 0.4 s there, on a busy machine seconds. */
const START_MS = 5_000;
const never = new AbortController().signal;
const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();

/** The driver of the suite, whose boxes are all under the runtime. */
function underRuntime(): SandboxDriver {
  const driver = createDockerDriver({ dockerHost: null });
  return {
    kind: driver.kind,
    prepare: (image) => driver.prepare(image, RUNTIME),
    answers: () => driver.answers(),
    engine: () => driver.engine(),
    open: (limits, labels, signal) => driver.open({ ...limits, runtime: RUNTIME }, labels, signal),
    sweep: (farm, alive) => driver.sweep(farm, alive),
    close: () => driver.close(),
  };
}

sandboxContract(RUNTIME, underRuntime, { words: { E2BIG: ['E2BIG', 'ENAMETOOLONG'] }, startMs: START_MS });
gradeContract(RUNTIME, underRuntime, { apart: 'apart', 'in-process': 'in-process' }, START_MS);

describe(`a hostile command under ${RUNTIME}`, () => {
  const driver = underRuntime();
  const labels = { ...LABELS, farm: `${LABELS.farm}-gvisor` };
  let neighbour: Box;
  let box: Box;

  beforeAll(async () => {
    await driver.prepare(LIMITS.image);
    neighbour = await driver.open(LIMITS, labels, never);
  });
  beforeEach(async () => {
    box = await driver.open(LIMITS, labels, never);
  });
  // whatever was done: nothing of it is left, and the neighbour has felt nothing
  afterEach(async () => {
    await box.close();
    expect(await run(neighbour, ['true'], { timeoutMs: 20_000 })).toMatchObject({ cause: 'exit', exitCode: 0 });
    expect((await containers()).length).toBe(1);
  });
  afterAll(async () => {
    await driver.close();
    expect(await containers()).toEqual([]);
  });

  const containers = async () =>
    (await docker('ps', '-aq', '--filter', `label=rollout-farm.farm=${labels.farm}`)).split('\n').filter(Boolean);

  test('meets another kernel than the machine’s', async () => {
    const [id] = await containers();
    expect(await docker('inspect', '--format', '{{.HostConfig.Runtime}}', id ?? '')).toBe(RUNTIME);
    expect((await python(box, 'import platform\nprint(platform.release())')).stdout.toString().trim()).not.toBe(
      release(),
    );
  });

  test('is an ordinary user without a capability or a group', async () => {
    const status = (await run(box, ['cat', '/proc/self/status'])).stdout.toString();
    expect(status).toMatch(/^Uid:\t(\d{5})\t\1\t\1\t\1$/m);
    expect(status).toMatch(/^Groups:\t\s*$/m);
    for (const set of ['CapInh', 'CapPrm', 'CapEff']) expect(status).toContain(`${set}:\t0000000000000000`);
  });

  test('can neither signal, trace, read nor write the runner', async () => {
    const code = `
import ctypes, os
open_doors = []
for n in range(65):
    try: os.kill(1, n); open_doors.append(f'signal {n}')
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):
    if libc.ptrace(request, 1, 0, 0) == 0: open_doors.append('ptrace')
for name in ('mem', 'environ'):
    for mode in (os.O_RDONLY, os.O_RDWR):
        try:
            if os.read(os.open(f'/proc/1/{name}', mode), 4096).strip(bytes(1)): open_doors.append(f'{name} {mode}')
        except OSError: pass
for fd in range(16):
    for mode in ('rb', 'wb'):
        try: open(f'/proc/1/fd/{fd}', mode); open_doors.append(f'fd {fd}')
        except OSError: pass
for what in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try: what(); open_doors.append('uid 0')
    except OSError: pass
print(open_doors)`;
    expect((await python(box, code)).stdout.toString()).toBe('[]\n');
  });

  test('reaches no network', async () => {
    const code = `
import socket
for address in ('10.255.255.1', '172.17.0.1'):
    try: socket.create_connection((address, 80), 1); print('reached')
    except OSError as e: print(e.errno)`;
    expect((await python(box, code)).stdout.toString()).toMatch(/^\d+\n\d+\n$/);
  });

  test('that busies a crowd of processes is told, killed and gone at its deadline', async () => {
    const code =
      'import os\nfor _ in range(20): os.fork() or os.execvp("sh", ["sh", "-c", "while :; do :; done"])\nos.wait()';
    expect(await python(box, code, { timeoutMs: 3_000 })).toMatchObject({ cause: 'timeout' });
    await box.reset();
    expect((await run(box, ['true'])).cause).toBe('exit');
  });

  // The limit of processes is the machine's, which sees threads of the box's kernel: that one dies of it.
  test.each([
    ['forks until there is no room', 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass'],
    ['eats memory', 'x = []\nwhile True: x.append(bytearray(10**7))'],
  ])('that %s is ended, and if the box is lost with it, that is its own doing', async (_, code) => {
    const ended = await python(box, code, { timeoutMs: 5_000 }).then(
      ({ cause }) => cause,
      (lost: { phase: string; blame: string }) => `${lost.phase} ${lost.blame}`,
    );
    expect(['timeout', 'signal', 'exit', 'run action']).toContain(ended);
  });

  test('that fills its disk hits its own limit', async () => {
    const code = "f = open('f', 'wb', 0)\nwhile True: f.write(b'0' * 10**6)";
    expect(await python(box, code, { timeoutMs: 20_000 })).toMatchObject({
      cause: 'exit',
      exitCode: 1,
      diskFull: true,
    });
  });

  test('forges no grade: who ends or patches the process of the solution has not passed', async () => {
    for (const solution of [
      'import os\nos._exit(0)\n',
      'import sys\nsys.exit(0)\n',
      'def double(n):\n    return 3 * n\n',
    ])
      expect(graded(await box.grade(checkOf(solution))).passed).toBe(false);
    expect(graded(await box.grade(checkOf(DOUBLE))).passed).toBe(true);
    expect(await box.write(bytes({ 'a.txt': 'after' }))).toEqual({ ok: true });
  });
});
