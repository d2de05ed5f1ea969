// Grades in a container box: two users that cannot reach each other, an interpreter that serves them and is reached by
// neither, nothing of either left behind, and a harness that fails is never a low grade.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Box, BoxLost, type Check } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { containersOf, pidsIn } from '../support/outside.ts';
import { bytes, LABELS, LIMITS, python, run } from './sandbox-contract.ts';
import { CHECK, checkOf, DOUBLE, graded } from './sandbox-grade-contract.ts';

const never = new AbortController().signal;
const PROCESSES = "sorted(open(f'/proc/{p}/comm').read().strip() for p in os.listdir('/proc') if p.isdigit())";

describe('a grade made apart', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;
  beforeAll(async () => {
    await driver.prepare(LIMITS.image);
    box = await driver.open(LIMITS, LABELS, never);
  });
  afterEach(async () => {
    await grade(DOUBLE); // a cold one also ends the interpreter that has stayed
    await box.reset();
    expect(await processes()).toEqual(['.rollout-farm-r', 'python3']);
  });
  afterAll(() => driver.close());

  const grade = async (solution: string, hidden = CHECK, over: Partial<Check> = {}) =>
    graded(await box.grade(checkOf(solution, over, hidden)));
  /** Of the box but the one that looks: the runner, and the nursery where it has stayed. */
  const processes = async () =>
    (await python(box, `import os\nprint('\\n'.join(${PROCESSES}))`)).stdout.toString().trim().split('\n');
  const lines = async (solution: string, hidden: string, over: Partial<Check> = {}) => {
    const seen = await grade(solution, hidden, over);
    expect(seen.stderr.toString()).toBe('');
    return seen.stdout.toString().trim().split('\n');
  };

  const WHO = `
def who():
    import os
    status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines() if ':' in l)
    fds = sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.lexists(f'/proc/self/fd/{n}'))
    return [os.getresuid(), os.getresgid(), os.getgroups(), status['CapEff'].strip(), status['CapPrm'].strip(), status['CapBnd'].strip(),
            status['NoNewPrivs'].strip(), status['Seccomp'].strip(), open('/proc/self/oom_score_adj').read().strip(), os.getcwd(),
            sorted(k for k in os.environ), fds, os.getsid(0) == os.getpid() or os.getsid(0) > 1]
`;

  test('has a judge and a candidate who are two ordinary users without capabilities, each in its own folder', async () => {
    const hidden = `import json, solution\n${WHO.replace('who', 'judge')}\nprint(json.dumps([judge(), solution.who()]))`;
    const [judge, candidate] = JSON.parse((await lines(WHO, hidden))[0]!);
    for (const [one, folder] of [
      [judge, '/judge'],
      [candidate, '/work'],
    ]) {
      const [uids, gids, groups, effective, permitted, , noNew, seccomp, score, cwd] = one;
      expect(new Set([...uids, ...gids]).size).toBe(1);
      expect(uids[0]).toBeGreaterThanOrEqual(10_000);
      expect([groups, BigInt(`0x${effective}`), BigInt(`0x${permitted}`), noNew, seccomp, score, cwd]).toEqual([
        [],
        0n,
        0n,
        '1',
        '2',
        '1000',
        folder,
      ]);
    }
    expect(judge[0][0]).not.toBe(candidate[0][0]);
    // beside its standard streams the candidate has one socket, the judge's; never the result
    expect(candidate[11]).toEqual(['socket']);
    expect(judge[11].sort()).toEqual(['pipe', 'socket']);
    expect(candidate[10].filter((name: string) => /KEY|TOKEN|SECRET|REDIS|AWS|FARM|DOCKER/i.test(name))).toEqual([]);
  });

  test('gives the candidate no way to the judge, the interpreter or the runner', async () => {
    const solution = `
def doors(expected):
    import ctypes, os, signal, time
    libc = ctypes.CDLL(None, use_errno=True)
    me, found, others, late = os.getpid(), [], None, time.monotonic() + 5
    # the fork that forked the two may still be ending
    while others is None or len(others) > expected and time.monotonic() < late:
        others = [int(p) for p in os.listdir('/proc') if p.isdigit() and int(p) != me]
    for pid in others:
        for number in range(65):
            try: os.kill(pid, number); found.append(f'signal {number} to {pid}')
            except OSError: pass
        for request in (16, 0x4206):
            if libc.ptrace(request, pid, 0, 0) == 0: found.append(f'ptrace {pid}')
        for name in ('mem', 'environ', 'maps', 'stack', 'syscall', 'auxv', 'io', 'exe', 'cwd', 'root'):
            for mode in (os.O_RDONLY, os.O_RDWR):
                try:
                    fd = os.open(f'/proc/{pid}/{name}', mode); os.read(fd, 1); found.append(f'{name} of {pid}')
                except OSError: pass
        for folder in ('fd', 'fdinfo', 'map_files', 'task'):
            try: found += [f'{folder} of {pid}' for _ in os.listdir(f'/proc/{pid}/{folder}') if folder != 'task']
            except OSError: pass
        try: open(f'/proc/{pid}/oom_score_adj', 'w').write('1000'); found.append(f'score of {pid}')
        except OSError: pass
        try:
            fd = os.pidfd_open(pid)
            if any(libc.syscall(438, fd, n, 0) >= 0 for n in range(8)): found.append(f'descriptor of {pid}')
        except OSError: pass
    for path in ('/judge', '/judge/check.py', '/judge/solution.py'):
        try: os.stat(path) if path != '/judge' else os.listdir(path); found.append(path)
        except OSError: pass
    for path in ('/farm/x', '/farm/harness/main.py', '/farm/harness/__pycache__/x', '/judge/x'):
        try: open(path, 'a'); found.append('write ' + path)
        except OSError: pass
    for call in (lambda: os.setuid(0), lambda: os.setgroups([0]), lambda: os.setresgid(0, 0, 0)):
        try: call(); found.append('uid')
        except OSError: pass
    return [len(others), found]
`;
    // the runner and the judge; a nursery that stays
    expect(await lines(solution, 'import solution\nprint(solution.doors(2))')).toEqual(['[2, []]']);
    expect(await lines(solution, 'import solution\nprint(solution.doors(3))', { warm: true })).toEqual(['[3, []]']);
  });

  test('shows the candidate none of the check: neither its file nor its words', async () => {
    const solution = `
def read(one, two):
    import os
    needle = (one + two).encode()
    found = []
    for folder, files in ((f, n) for root in ('/work', '/judge', '/farm', '/tmp', '/dev/shm', '/etc', '/run', '/var') for f, _, n in os.walk(root)):
        for name in files:
            try:
                if needle in open(os.path.join(folder, name), 'rb').read(1 << 20): found.append(os.path.join(folder, name))
            except OSError: pass
    return found
`;
    const hidden =
      "import solution\n# hidden-needle-in-the-check\nprint(solution.read('hidden-', 'needle-in-the-check'))";
    expect(await lines(solution, hidden)).toEqual(['[]']);
  });

  test('hidden data is there for both, the rest of the task as data for the judge', async () => {
    const over = {
      files: bytes({ 'solution.py': 'def read(p):\n    return open(p).read()\n', 'edited.txt': 'of the agent' }),
      hidden: bytes({
        'check.py':
          "import solution\nprint([solution.read('data/x.txt'), open('data/x.txt').read(), open('edited.txt').read()])",
        'data/x.txt': 'of the check',
      }),
    };
    expect((await grade('', '', over)).stdout.toString()).toBe("['of the check', 'of the check', 'of the agent']\n");
  });

  test('leaves nothing of either user: processes, files, shared memory', async () => {
    const litter = `
def litter():
    import ctypes, os, time
    libc = ctypes.CDLL(None, use_errno=True)
    made = [libc.shmget(0, 4096, 0o1600) >= 0, libc.semget(0, 1, 0o1600) >= 0, libc.msgget(0, 0o1600) >= 0]
    for folder in ('/tmp', '/dev/shm', '.'):
        os.makedirs(f'{folder}/of-{os.getuid()}/deep/er', mode=0o700)
        open(f'{folder}/of-{os.getuid()}/deep/er/file', 'w').write('x')
        open(f'{folder}/f-{os.getuid()}', 'w').close()
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
    return made
`;
    const hidden = `import solution\n${litter.replace('litter', 'own')}\nprint([own(), solution.litter()])`;
    for (const warm of [false, true]) {
      const seen = await grade(litter, hidden, { warm });
      expect(seen.stdout.toString()).toBe('[[True, True, True], [True, True, True]]\n');
      expect(await processes()).toEqual(
        warm ? ['.rollout-farm-r', 'python3', 'python3'] : ['.rollout-farm-r', 'python3'],
      );
      await box.reset();
      const left = `import os\nprint([len(open('/proc/sysvipc/' + k).readlines()) for k in ('shm', 'sem', 'msg')], [os.listdir(f) for f in ('/tmp', '/dev/shm', '/work')])`;
      expect((await python(box, left)).stdout.toString()).toBe('[1, 1, 1] [[], [], []]\n');
      expect(
        (await grade('', "import os\nprint(os.listdir('/judge'))", { warm, files: new Map() })).stdout.toString(),
      ).toBe("['check.py']\n");
    }
  });

  test.each([
    [
      'forks until there is no room',
      'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass',
      { pidsExceeded: true },
    ],
    ['eats memory', 'x = []\nwhile True: x.append(bytearray(10**7))', { oomKilled: true }],
    [
      'eats memory in many',
      'import os, time\nfor _ in range(60):\n    try:\n        if os.fork() == 0:\n            x = bytearray(6_000_000)\n            time.sleep(25)\n    except OSError: pass\ntime.sleep(5)',
      { oomKilled: true },
    ],
    [
      'shoots at everybody',
      'import os\nwhile True:\n    for p in range(1, 400):\n        for n in (9, 15, 19, 14, 17):\n            if p != os.getpid():\n                try: os.kill(p, n)\n                except OSError: pass',
      {},
    ],
    [
      'fills every disk',
      "for f in ('/work/a', '/tmp/a', '/dev/shm/a'):\n    try:\n        with open(f, 'wb', 0) as o:\n            while True: o.write(bytes(10**6))\n    except OSError: pass\nwhile True: pass",
      {},
    ],
    ['floods its output', "import os\nwhile True: os.write(1, b'x' * 65536)", {}],
  ])('a candidate that %s is told, and the same interpreter serves the next', async (_, solution, told) => {
    await grade(DOUBLE, CHECK, { warm: true });
    const pid = await nursery();
    // those that end by themselves get the time that a busy machine may need
    const timeoutMs = 'oomKilled' in told ? 30_000 : 2_500;
    const bad = await grade(solution, CHECK, { warm: true, timeoutMs });
    expect(bad).toMatchObject({ passed: false, ...told });
    expect(await grade(DOUBLE, CHECK, { warm: true })).toMatchObject({
      passed: true,
      oomKilled: false,
      pidsExceeded: false,
    });
    expect(await nursery()).toBe(pid);
  });

  /** The interpreter that has stayed, seen between grades. */
  async function nursery(): Promise<string> {
    const seen = await run(box, [
      'sh',
      '-c',
      'for p in /proc/[0-9]*; do if [ "$(stat -c %u $p)" = 0 ] && [ $p != /proc/1 ]; then echo $p; fi; done',
    ]);
    return seen.stdout.toString();
  }

  test.each([
    ['died', 'SIGKILL'],
    ['stands still', 'SIGSTOP'],
  ] as const)('whose interpreter %s while it waited is made by a new one', async (_, signal) => {
    await grade(DOUBLE, CHECK, { warm: true });
    const pids = (await Promise.all((await containersOf(LABELS.farm)).map((one) => pidsIn(one, 'main.py')))).flat();
    expect(pids).toHaveLength(1);
    process.kill(pids[0] as number, signal);
    expect((await grade(DOUBLE, CHECK, { warm: true })).passed).toBe(true);
    expect((await grade('def double(n): return 3\n', CHECK, { warm: true })).passed).toBe(false);
  });

  test('starts afresh after a prepared interpreter, and the other way round', async () => {
    const seen = async (warm: boolean) =>
      lines(DOUBLE, "import sys, solution\nprint('decimal' in sys.modules, 'random' in sys.modules)", { warm });
    for (const warm of [true, false, true, false, false])
      expect(await seen(warm)).toEqual([warm ? 'True False' : 'False False']);
  });

  const TOLD = `
def told():
    import os, resource, signal, sys, threading, warnings
    status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines() if ':' in l)
    shown = ('Umask', 'Uid', 'Gid', 'Groups', 'Threads', 'SigBlk', 'SigIgn', 'SigCgt', 'SigPnd', 'ShdPnd', 'CapInh', 'CapBnd', 'NoNewPrivs', 'Seccomp')
    return [sorted(sys.modules), list(sys.argv), list(sys.path), sorted(sys.path_importer_cache), [type(f).__name__ for f in sys.meta_path],
            [repr(f)[:40] for f in sys.path_hooks], repr(sys.flags), sys.orig_argv, sys.executable, sys.getrecursionlimit(), repr(warnings.filters),
            sorted(vars(sys.modules['__main__'])), sorted(vars(__import__('builtins'))), hash('abc'), {s: status[s].strip() for s in shown if s in status},
            dict(os.environ), os.getcwd(), os.getppid(), os.getpgrp() == os.getpid(), os.getsid(0) == os.getpid(), os.getpriority(0, 0),
            os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)), {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith('RLIMIT_')},
            [str(signal.getsignal(n)) for n in range(1, 65)], threading.active_count(), sorted(int(n) for n in os.listdir('/proc/self/fd'))[:5],
            open('/proc/self/cmdline').read(), open('/proc/self/comm').read(), open('/proc/self/oom_score_adj').read(), sys.gettrace(), sys.getswitchinterval(),
            sorted(os.listdir('/tmp') + os.listdir('/dev/shm') + os.listdir('/work'))]
`;

  test.each(['apart', 'in-process'] as const)(
    'an interpreter that is kept for a recycled box tells %s what a new one tells',
    async (kind) => {
      const hidden = `import json, solution\n${TOLD.replace('told', 'judge')}\nprint(json.dumps([judge(), solution.told()], default=str))`;
      const told = async (recycled: boolean): Promise<unknown> => {
        const seen = graded(await box.grade(checkOf(TOLD, { kind }, hidden), recycled));
        expect(seen).toMatchObject({ passed: true, level: kind });
        return JSON.parse(seen.stdout.toString());
      };
      const ofItsOwn = await told(false);
      expect(await told(true)).toEqual(ofItsOwn);
      const pid = await nursery();
      for (const spoil of [
        'import builtins, sys\nbuiltins.AssertionError = ValueError\nsys.setrecursionlimit(50)\nsys.modules.clear()',
        'import os, random, decimal\nos.environ["A"] = "1"\nos.umask(0)\nos.nice(5)',
        'import os\nos._exit(3)',
      ])
        await box.grade(checkOf(`${spoil}\n${DOUBLE}`, { kind }), true);
      expect(await told(true)).toEqual(ofItsOwn);
      expect(await nursery()).toBe(pid);
      expect(await told(false)).toEqual(ofItsOwn);
      expect(await nursery()).toBe('');
    },
  );

  test.each(['apart', 'in-process'] as const)(
    'takes no bytecode that the agent left for the own files of a check %s',
    async (kind) => {
      const made = await run(box, [
        'python3',
        '-c',
        `
import sys, importlib._bootstrap_external as b
code = compile('def same(a, b): return True', '/judge/helper.py', 'exec')
print(sys.implementation.cache_tag, bytes(b._code_to_hash_pyc(code, b'x' * 8, False)).hex())`,
      ]);
      const [tag, hex] = made.stdout.toString().trim().split(' ') as [string, string];
      for (const folder of ['', 'tests/']) {
        const helper = 'def same(a, b): return a == b\n';
        const from = folder === '' ? 'helper' : 'tests.helper';
        const check = checkOf('def double(n): return 3\n', { kind });
        const seen = await box.grade({
          ...check,
          files: new Map([...check.files, [`${folder}__pycache__/helper.${tag}.pyc`, Buffer.from(hex, 'hex')]]),
          hidden: bytes({
            'check.py': `import solution\nfrom ${from} import same\nassert same(solution.double(2), 4)\n`,
            [`${folder}helper.py`]: helper,
          }),
          own: [...check.own, `${folder}__pycache__/helper.${tag}.pyc`],
        });
        expect(graded(seen)).toMatchObject({ passed: false, level: kind, exitCode: 1 });
      }
    },
  );

  test('leaves no interpreter behind that was for one grade alone', async () => {
    for (const solution of [DOUBLE, 'import os\nos._exit(3)', 'while True: pass']) {
      await grade(solution, CHECK, { timeoutMs: 1_500 });
      expect(await nursery()).toBe('');
    }
  });

  test('says by which signal a candidate died', async () => {
    expect(await grade('import ctypes\nctypes.string_at(0)')).toMatchObject({ passed: false, candidateSignal: 11 });
    expect(await grade('import os\nos.kill(os.getpid(), 9)')).toMatchObject({ passed: false });
    expect(await grade(DOUBLE)).toMatchObject({ passed: true, candidateSignal: null });
  });

  test.each(['/work/python3', 'python3', '/tmp/python3', '/work/../work/python3', '/proc/self/cwd/python3'])(
    'takes no interpreter that untrusted code could have made (%s)',
    async (interpreter) => {
      const files = bytes({ 'solution.py': DOUBLE, python3: '#!/bin/sh\necho planted' });
      const seen = await grade('', CHECK, { interpreter, files });
      if (interpreter === 'python3') expect(seen.passed).toBe(true);
      else expect(seen).toMatchObject({ cause: 'launch', passed: false, launchError: { code: 'EACCES' } });
      expect(seen.stdout.toString()).not.toContain('planted');
    },
  );

  test('compiles the harness once an image: later boxes get the bytecode', async () => {
    await grade(DOUBLE);
    const other = await driver.open(LIMITS, LABELS, never);
    const hidden =
      "import os\nprint(sorted(n for n in os.listdir('/farm/harness/__pycache__'))[:1], os.stat('/farm/harness/main.py').st_mtime)";
    const seen = graded(await other.grade(checkOf('', {}, hidden)));
    expect(seen.stdout.toString()).toMatch(/^\['\w+\.cpython-\d+\.pyc'\] 0\.0\n$/);
    await other.close();
  });
});

describe('a grade that a box cannot be told of', () => {
  const driver = createDockerDriver({ dockerHost: null });
  afterAll(() => driver.close());
  const many = Array.from({ length: 40_000 }, (_, i) => `${'n'.repeat(100)}${i}`);

  test.each<[string, Partial<Check>]>([
    ['names of files', { files: new Map(many.map((name) => [name, Buffer.alloc(0)])) }],
    ['names of hidden files', { hidden: new Map(many.map((name) => [name, Buffer.alloc(0)])) }],
    ['names of functions', { task: { functions: many, names: [], withheld: [] } }],
    ['arguments', { argv: ['check.py', ...many.slice(0, 20_000)], own: many.slice(0, 15_000) }],
  ])('for its %s is refused before the box hears of it', async (_, over) => {
    const box = await driver.open(LIMITS, LABELS, never);
    const seen = graded(await box.grade(checkOf(DOUBLE, over)));
    expect(seen).toMatchObject({ cause: 'launch', passed: false, launchError: { code: 'E2BIG' } });
    expect(seen.launchError?.message).toMatch(/ \d+ bytes long; allowed: 3145728$/);
    expect((await graded(await box.grade(checkOf(DOUBLE)))).passed).toBe(true);
    await box.close();
  });
});

describe('a machine without room for a process', () => {
  const driver = createDockerDriver({ dockerHost: null });
  afterAll(() => driver.close());
  /** `most` processes in the box, the runner among them. */
  async function within(most: number): Promise<{ box: Box; allow(more: number): void }> {
    const box = await driver.open(LIMITS, { ...LABELS, farm: `${LABELS.farm}-room` }, never);
    const [id] = await containersOf(`${LABELS.farm}-room`);
    const allow = (count: number): void =>
      void execFileSync('docker', ['update', '--pids-limit', String(count), id as string]);
    allow(most);
    return { box, allow };
  }
  const LOST = { phase: 'start', blame: 'engine', message: expect.stringContaining('EAGAIN') };

  test.each([
    ['the interpreter', 1, false],
    ['the interpreter that is kept', 1, true],
    ['the candidate', 2, false],
    ['the candidate, by one that is kept', 2, true],
    ['the judge, by one that is kept', 3, true],
  ])('loses the box of a grade for want of %s, and blames nobody', async (_, most, recycled) => {
    const { box } = await within(most);
    await expect(box.grade(checkOf(DOUBLE), recycled)).rejects.toBeInstanceOf(BoxLost);
    await expect(box.grade(checkOf(DOUBLE), recycled)).rejects.toMatchObject(LOST);
    await box.close();
  });

  test('loses the box of a command, which is no launch error of the command', async () => {
    const { box } = await within(1);
    await expect(run(box, ['true'])).rejects.toMatchObject(LOST);
    await box.close();
  });

  test('leaves no descriptor in the interpreter that is kept', async () => {
    const { box, allow } = await within(128);
    expect(graded(await box.grade(checkOf(DOUBLE), true)).passed).toBe(true);
    const [id] = await containersOf(`${LABELS.farm}-room`);
    const [pid] = await pidsIn(id as string, 'main.py');
    const open = (): string[] => readdirSync(`/proc/${pid}/fd`).sort();
    const before = open();
    for (const most of [2, 3])
      for (let turn = 0; turn < 3; turn += 1) {
        allow(most);
        await expect(box.grade(checkOf(DOUBLE), true)).rejects.toMatchObject(LOST);
      }
    expect(open()).toEqual(before);
    allow(128);
    expect(graded(await box.grade(checkOf(DOUBLE), true)).passed).toBe(true);
    expect(await pidsIn(id as string, 'main.py')).toEqual([pid]);
    await box.close();
  });
});

describe('a harness that fails', () => {
  const folders: string[] = [];
  const drivers: ReturnType<typeof createDockerDriver>[] = [];
  afterAll(async () => {
    for (const driver of drivers) await driver.close();
    for (const folder of folders) rmSync(folder, { recursive: true });
  });
  async function boxWith(main: string): Promise<Box> {
    const folder = mkdtempSync(`${tmpdir()}/rollout-farm-harness-`);
    folders.push(folder);
    writeFileSync(`${folder}/main.py`, main);
    const driver = createDockerDriver({ dockerHost: null, harnessSource: folder });
    drivers.push(driver);
    return driver.open(LIMITS, LABELS, never);
  }
  const READY = `
import os, socket, struct, time
control = socket.socket(fileno=3)
control.sendall(b'R')
data, fds = b'', []
while len(data) < 4 or len(data) < 4 + struct.unpack('<I', data[:4])[0]:
    part, more, _, _ = socket.recv_fds(control, 65536, 8)
    data += part; fds += more
`;

  test('to start is a launch error with its last words', async () => {
    const box = await boxWith("raise SystemExit('no such module here')");
    const seen = graded(await box.grade(checkOf(DOUBLE)));
    expect(seen).toMatchObject({ cause: 'launch', passed: false, launchError: { code: 'EPIPE' } });
    expect(seen.why).toContain('no such module here');
    expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
  });

  test('to be ready or to answer in time is a box lost, for want of time', async () => {
    for (const main of ['import time\ntime.sleep(60)', `${READY}\ntime.sleep(60)`]) {
      const slow = await boxWith(main);
      await expect(slow.grade(checkOf(DOUBLE))).rejects.toMatchObject({ phase: 'start', signature: 'start:ETIMEDOUT' });
    }
  });

  test('to take its task is a launch error with its reason, for want of room a box lost', async () => {
    const box = await boxWith(`${READY}\ncontrol.sendall(struct.pack('<II', 0, 2))\ntime.sleep(60)`);
    expect(graded(await box.grade(checkOf(DOUBLE)))).toMatchObject({
      cause: 'launch',
      launchError: { code: 'ENOENT' },
    });
    for (const errno of [11, 12, 23, 24]) {
      const short = await boxWith(`${READY}\ncontrol.sendall(struct.pack('<II', 0, ${errno}))\ntime.sleep(60)`);
      await expect(short.grade(checkOf(DOUBLE))).rejects.toMatchObject({ phase: 'start', blame: 'engine' });
    }
    const silent = await boxWith(`${READY}\nraise SystemExit('gone')`);
    expect(graded(await silent.grade(checkOf(DOUBLE)))).toMatchObject({
      cause: 'launch',
      launchError: { code: 'EPIPE' },
    });
  });

  test('under a grade ends the box, which blames nobody by a grade', async () => {
    const box = await boxWith(`${READY}
who = __import__('json').loads(data[4:])['candidate']
mid = os.fork()
if mid == 0:
    pid = os.fork()
    if pid == 0:
        os.setgroups([]); os.setresgid(who['gid'], who['gid'], who['gid']); os.setresuid(who['uid'], who['uid'], who['uid'])
        time.sleep(60)
    control.sendall(struct.pack('<II', pid, 0))
    os._exit(0)
os.waitpid(mid, 0)
time.sleep(0.3)
os._exit(0)`);
    const lost = await box.grade(checkOf(DOUBLE, { timeoutMs: 20_000 })).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(BoxLost);
    expect(lost).toMatchObject({ phase: 'run', message: expect.stringContaining('interpreter died') });
  });

  test('with a result that is none, another’s or too long passes nobody', async () => {
    for (const said of ['{}', '{"completed": true, "exit": 0, "token": "another"}', 'x'.repeat(100_000)]) {
      const box = await boxWith(`${READY}
mid = os.fork()
if mid == 0:
    pid = os.fork()
    if pid == 0:
        os.setresgid(20000, 20000, 20000); os.setresuid(20000, 20000, 20000)
        os.write(fds[3], ${JSON.stringify(said)}.encode())
        os._exit(0)
    control.sendall(struct.pack('<II', pid, 0))
    os._exit(0)
os.waitpid(mid, 0)
time.sleep(60)`);
      const seen = graded(await box.grade(checkOf(DOUBLE, { timeoutMs: 20_000 })));
      expect([seen.cause, seen.exitCode, seen.passed]).toEqual(['exit', 0, false]);
    }
  });
});
