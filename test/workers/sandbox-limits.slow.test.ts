// What bounds a command, what its result says of its death, and what is left of it: nothing, seen from outside.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Box, Command, CommandResult } from '../../src/shared/sandbox.ts';
import { diagnosticsOf } from '../../src/workers/rollout/environments/box-command.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { spoken } from '../support/spoken.ts';
import { LABELS, LIMITS, run } from './sandbox-contract.ts';

const never = new AbortController().signal;
const docker = async (...args: string[]) => (await promisify(execFile)('docker', args)).stdout.trim();

describe('a command and its limits', () => {
  const driver = createDockerDriver({ dockerHost: null });
  const labels = { ...LABELS, farm: `${LABELS.farm}-limits` };
  const limits = { ...LIMITS, tmpfsMb: 16 };
  let box: Box;
  let container: string;

  beforeAll(async () => {
    box = await driver.open(limits, labels, never);
    container = await docker('ps', '-q', '--no-trunc', '--filter', `label=rollout-farm.farm=${labels.farm}`);
  });
  afterAll(() => driver.close());

  /** As the engine's host sees the box: the runner is one of them. */
  async function processes(): Promise<number> {
    return (await docker('top', container, '-eo', 'pid')).split('\n').length - 1;
  }

  /** Says something before anything else, and is empty-handed only where it had no time to. */
  function begins(code: string, firstMs: number, over: Partial<Command> = {}): Promise<CommandResult> {
    const words = ['sh', '-c', 'echo before; exec python3 -c "$1"', 'sh', code];
    return spoken(firstMs, (timeoutMs) => run(box, words, { ...over, timeoutMs }));
  }

  const deaths: readonly (readonly [string, string, Partial<CommandResult>, string[]])[] = [
    ['its own exit', 'sys.exit(3)', { cause: 'exit', exitCode: 3 }, []],
    ['a signal', 'os.kill(os.getpid(), 11)', { cause: 'signal', exitCode: -11 }, ['signal']],
    ['its deadline', 'time.sleep(99)', { cause: 'timeout', exitCode: -1 }, ['timeout']],
    ['memory', 'x = []\nwhile True: x.append(bytearray(10**7))', { cause: 'signal', oomKilled: true }, ['memory']],
    [
      'too many processes',
      'try:\n    while True: os.fork() or time.sleep(99)\nexcept OSError: sys.exit(1)',
      { cause: 'exit', pidsExceeded: true },
      ['pids'],
    ],
    [
      'too many bytes on disk',
      "f = open('f', 'wb', 0)\nwhile True: f.write(b'0' * 10**5)",
      { cause: 'exit', exitCode: 1, diskFull: true },
      ['disk'],
    ],
    [
      'too many files',
      "for i in range(10**6): open(f'i{i}', 'w').close()",
      { cause: 'exit', exitCode: 1, diskFull: true },
      ['disk'],
    ],
    [
      'a file that is too large',
      'signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nos.truncate(os.open("f", os.O_RDWR | os.O_CREAT), 2**40)',
      { cause: 'signal', exitCode: -25, diskFull: true },
      ['disk'],
    ],
    ['too much output', 'print("x" * 10**6, flush=True)', { cause: 'exit', exitCode: 0 }, ['output']],
  ];

  test.each(deaths)('that ends of %s says so, and what it had printed is kept', async (_, code, ending, told) => {
    // Far from what any other end takes.
    const firstMs = ending.cause === 'timeout' ? 1_500 : 120_000;
    const result = await begins(`import os, signal, sys, time\n${code}`, firstMs, { outputBytes: 1_000 });
    expect(result).toMatchObject(ending);
    expect(result.stdout.toString().slice(0, 7)).toBe('before\n');
    expect(diagnosticsOf(result)).toEqual(expect.arrayContaining(told));
    if (told.length === 0) expect(diagnosticsOf(result)).toEqual([]);
    expect(await processes()).toBe(1);
    await box.reset();
    const after = await run(box, ['true']);
    expect(diagnosticsOf(after)).toEqual([]);
  });

  test.each([
    [
      'ignores every signal',
      'for n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass',
    ],
    ['leads sessions of its own', 'for _ in range(5):\n    if os.fork() == 0: os.setsid()'],
    [
      'forks without an end',
      'def chain():\n    while True:\n        if os.fork(): os._exit(0)\nif os.fork() == 0: chain()',
    ],
    ['forks a tree', 'for _ in range(6):\n    try: os.fork()\n    except OSError: pass'],
    ['stands still', 'if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)'],
    ['has closed what it was given', 'os.closerange(0, 1024)\nif os.fork() == 0: os.setsid()'],
    [
      'hides among threads',
      'import threading\nfor _ in range(20): threading.Thread(target=time.sleep, args=(99,)).start()',
    ],
    ['changes its name and its priority', 'os.nice(19)\nctypes.CDLL(None).prctl(15, b"init")\nos.fork()'],
    ['is its own watchdog', 'while True:\n    child = os.fork()\n    if child == 0: break\n    os.waitpid(child, 0)'],
    ['waits in a pipe that nobody writes', 'os.mkfifo("p")\nif os.fork() == 0: open("p")\nopen("p")'],
    ['holds a file that is gone', 'f = open("gone", "w+"); os.unlink("gone"); f.write("x" * 10**6); os.fork()'],
  ])('that %s is dead with all its own at its deadline', async (_, code) => {
    const prelude = 'import ctypes, os, signal, sys, time\n';
    const result = await begins(`${prelude}${code}\nwhile True: time.sleep(0.01)`, 1_500);
    expect([result.cause, result.stdout.toString().slice(0, 7)]).toEqual(['timeout', 'before\n']);
    expect(await processes()).toBe(1);
    await box.reset();
  });

  test('finds its three folders without devices and set-uid programs, and shared memory without any program', async () => {
    const mounts = (await run(box, ['cat', '/proc/mounts'])).stdout.toString().split('\n');
    const options = (folder: string) => mounts.find((line) => line.split(' ')[1] === folder)?.split(' ')[3] ?? '';
    for (const folder of ['/work', '/tmp', '/dev/shm'])
      expect(options(folder).split(',')).toEqual(expect.arrayContaining(['nosuid', 'nodev']));
    expect(options('/dev/shm').split(',')).toContain('noexec');
    const made = await run(box, ['sh', '-c', 'cp /bin/true /work/t && /work/t && echo runs; mknod /work/d c 1 3']);
    expect(made.stdout.toString()).toBe('runs\n');
    expect(made.exitCode).not.toBe(0);
    await box.reset();
  });

  test('may be kept from running what it wrote', async () => {
    const closed = await driver.open({ ...limits, exec: false }, labels, never);
    for (const folder of ['/work', '/tmp', '/dev/shm']) {
      await run(closed, ['sh', '-c', `cp /bin/true ${folder}/t; echo 'print(1)' > ${folder}/p.py`]);
      expect(await run(closed, [`${folder}/t`])).toMatchObject({ cause: 'launch', launchError: { code: 'EACCES' } });
      expect((await run(closed, ['python3', `${folder}/p.py`])).stdout.toString()).toBe('1\n');
    }
    await closed.close();
  });

  test('runs under the runtime that was asked for, and one that the engine lacks is refused before anything starts', async () => {
    await expect(driver.prepare(limits.image, 'no-such-runtime')).rejects.toMatchObject({
      code: 'runtime_missing',
      exit: 3,
      message: expect.stringContaining('runc'),
    });
    await expect(driver.open({ ...limits, runtime: 'no-such-runtime' }, labels, never)).rejects.toMatchObject({
      phase: 'start',
      blame: 'engine',
    });
    await driver.prepare(limits.image, 'runc');
    const named = { ...labels, farm: `${labels.farm}-runc` };
    const other = await driver.open({ ...limits, runtime: 'runc' }, named, never);
    const id = await docker('ps', '-q', '--filter', `label=rollout-farm.farm=${named.farm}`);
    expect(await docker('inspect', '--format', '{{.HostConfig.Runtime}}', id)).toBe('runc');
    await other.close();
  });

  test('has the weight and the share of its processors, dealt out in short turns', async () => {
    for (const [cpus, quota, period, shares] of [
      [1, 20_000, 20_000, 1024],
      [0.5, 10_000, 20_000, 512],
      [0.01, 1_000, 100_000, 10],
    ] as const) {
      const named = { ...labels, farm: `${labels.farm}-cpu` };
      const other = await driver.open({ ...limits, cpus }, named, never);
      const id = await docker('ps', '-q', '--filter', `label=rollout-farm.farm=${named.farm}`);
      const [facts] = JSON.parse(await docker('inspect', id));
      expect(facts.HostConfig).toMatchObject({ CpuQuota: quota, CpuPeriod: period, CpuShares: shares });
      await other.close();
    }
  });
});
