// What untrusted code may try against a container box, and what is left of the box, its neighbours and the engine.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Box } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { bytes, LABELS, LIMITS, python, run } from './sandbox-contract.ts';

const CAPS = { maxBytes: 1_000_000, maxEntries: 100 };

describe('a hostile command', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;
  let neighbour: Box;

  beforeAll(async () => {
    await driver.prepare(LIMITS.image);
    const never = new AbortController().signal;
    [box, neighbour] = await Promise.all([driver.open(LIMITS, LABELS, never), driver.open(LIMITS, LABELS, never)]);
  });
  // after each of them the box works, is clean, and its neighbour has felt nothing
  afterEach(async () => {
    await box.reset();
    expect((await run(box, ['sh', '-c', 'ls -A /work /tmp /dev/shm'])).stdout.toString()).toBe(
      '/dev/shm:\n\n/tmp:\n\n/work:\n',
    );
    expect((await run(box, ['sh', '-c', 'ls -d /proc/[0-9]*'])).stdout.toString().split('\n')).toHaveLength(3);
    expect(await run(neighbour, ['true'], { timeoutMs: 20_000 })).toMatchObject({ cause: 'exit', exitCode: 0 });
  });
  afterAll(() => driver.close());

  test('is an ordinary user without a capability, a group or a way to new privileges', async () => {
    const status = (await run(box, ['cat', '/proc/self/status'])).stdout.toString();
    expect(status).toMatch(/^Uid:\t(\d{5})\t\1\t\1\t\1$/m);
    expect(status).toMatch(/^Groups:\t\s*$/m);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(status).toContain(`${set}:\t0000000000000000`);
    expect(status).toContain('NoNewPrivs:\t1');
    expect(status).toContain('Seccomp:\t2');
    expect((await run(box, ['cat', '/proc/self/oom_score_adj'])).stdout.toString()).toBe('1000\n');
    const uidOf = async (one: Box) => (await run(one, ['id', '-u'])).stdout.toString();
    expect(await uidOf(box)).not.toBe(await uidOf(neighbour));
  });

  test('holds no descriptor but its three, leads its own session, has the usual mask', async () => {
    const code = `
import os
print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid(), oct(os.umask(0)))
import resource, signal
print(resource.getrlimit(resource.RLIMIT_CORE), signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)`;
    // the fourth is the listing itself
    expect((await python(box, code)).stdout.toString()).toBe('[0, 1, 2] 4 True 0o22\n(0, 0) set() True\n');
  });

  test('that goes on for long finds its runner with shorter turns of the processors, and cannot ask for such', async () => {
    const code = `
import ctypes, os, platform, struct, time
libc = ctypes.CDLL(None, use_errno=True)
set_attr, get_attr = (274, 275) if platform.machine() == 'aarch64' else (314, 315)
def turn(pid):
    have = ctypes.create_string_buffer(48)
    assert libc.syscall(get_attr, pid, have, 48, 0) == 0
    return struct.unpack('IIQiIQQQ', have.raw)[5]
knows = tuple(int(n) for n in platform.release().split('-')[0].split('.')[:2]) >= (6, 12)
usual, late = turn(0), time.monotonic() + 10
while knows and turn(1) != 100_000 and time.monotonic() < late: pass
print(turn(1) < usual or not knows, os.nice(0), os.getpriority(os.PRIO_PROCESS, 1))
wish = struct.pack('IIQiIQQQ', 48, 0, 0, 0, 0, 100_000, 0, 0)
print([(libc.syscall(set_attr, pid, wish, 0), ctypes.get_errno()) for pid in (0, 1)])
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print(turn(0) == usual, os.waitstatus_to_exitcode(os.wait()[1]) if os.fork() else os._exit(0 if turn(0) == usual else 1))`;
    expect((await python(box, code)).stdout.toString()).toBe('True 0 0\n[(-1, 38), (-1, 38)]\nTrue 0\n');
  });

  test('can neither signal, trace, read nor write the runner', async () => {
    const code = `
import ctypes, os
open_doors = []
for n in list(range(0, 65)):
    try: os.kill(1, n); open_doors.append(f'signal {n}')
    except PermissionError: pass
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
for request in (16, 0x4206):
    if libc.ptrace(request, 1, 0, 0) == 0: open_doors.append('ptrace')
for name in ('mem', 'environ', 'fd', 'fdinfo', 'maps', 'exe', 'cwd', 'root', 'stack', 'syscall', 'auxv', 'io', 'map_files'):
    for mode in (os.O_RDONLY, os.O_RDWR):
        try:
            fd = os.open(f'/proc/1/{name}', mode)
            os.read(fd, 1)
            open_doors.append(f'{name} {mode}')
        except OSError: pass
    try: os.listdir(f'/proc/1/{name}'); open_doors.append(f'ls {name}')
    except OSError: pass
for fd in range(16):
    for mode in ('rb', 'wb'):
        try: open(f'/proc/1/fd/{fd}', mode); open_doors.append(f'fd {fd}')
        except OSError: pass
try: open('/proc/1/oom_score_adj', 'w').write('1000'); open_doors.append('oom_score_adj')
except OSError: pass
try: os.pidfd_open(1); fd = os.pidfd_open(1); libc.syscall(438, fd, 0, 0) >= 0 and open_doors.append('pidfd_getfd')
except OSError: pass
for what in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgid(0), lambda: os.setgroups([0])):
    try: what(); open_doors.append('uid 0')
    except OSError: pass
print(open_doors, open('/proc/1/cmdline').read())`;
    expect((await python(box, code)).stdout.toString()).toBe('[] /.rollout-farm-runner\0\n');
  });

  test('finds no io_uring, no namespaces of its own and no keyring', async () => {
    const code = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print([libc.syscall(n, a, b) for n, a, b in ((425, 1, 0), (426, 0, 0), (427, 0, 0), (272, 0x10000000, 0), (248, 0, 0), (321, 0, 0))])`;
    expect((await python(box, code)).stdout.toString()).toBe(`[${Array(6).fill(-1).join(', ')}]\n`);
  });

  test('cannot pass a frame off as the runner’s, and its words come out as words', async () => {
    const forged = Buffer.concat([Buffer.from([31, 0, 0, 0]), Buffer.from('z'), Buffer.alloc(31)]);
    const result = await run(box, ['cat'], { stdin: forged });
    expect(result).toMatchObject({ cause: 'exit', exitCode: 0, stdoutBytes: forged.length });
    expect(result.stdout.equals(forged)).toBe(true);
  });

  test('reaches no network', async () => {
    const code = `
import os, socket
print(sorted(l.split(':')[0].strip() for l in open('/proc/net/dev').readlines()[2:]))
for address in ('10.255.255.1', '172.17.0.1'):
    try: socket.create_connection((address, 80), 1); print('reached')
    except OSError as e: print(e.errno)
for path in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock'): assert not os.path.exists(path)`;
    expect((await python(box, code)).stdout.toString()).toBe("['lo']\n101\n101\n");
  });

  test('can write into three folders and nowhere else', async () => {
    const code = `
import os
found = set()
for folder, names, _ in os.walk('/'):
    if folder.startswith(('/proc', '/sys')): names[:] = []; continue
    try:
        with open(folder + '/.probe', 'w'): pass
        os.unlink(folder + '/.probe'); found.add(folder)
    except OSError: pass
print(sorted(found - {'/dev/mqueue'}))`;
    expect((await python(box, code)).stdout.toString()).toBe("['/dev/shm', '/tmp', '/work']\n");
  });

  test('that forks until there is no room is told, killed and gone', async () => {
    const bomb = await python(box, 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', {
      timeoutMs: 2_500,
    });
    expect(bomb).toMatchObject({ cause: 'timeout', pidsExceeded: true });
    // A runner that cannot end it is given up as a lost box, 45 s later.
    expect(bomb.wallMs).toBeLessThan(30_000);
    expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0, pidsExceeded: false });
  });

  test('that forks without end is ended in time also where others keep every processor busy', async () => {
    const ending = new AbortController();
    const busy = run(neighbour, ['sh', '-c', 'for i in 1 2; do (while :; do :; done) & done; wait'], {
      timeoutMs: 170_000,
      signal: ending.signal,
    }).catch(() => null);
    try {
      for (let turn = 0; turn < 4; turn += 1) {
        const bomb = await python(box, 'import os\nwhile True:\n    try: os.fork()\n    except OSError: pass', {
          timeoutMs: 1_500,
        });
        expect(bomb).toMatchObject({ cause: 'timeout' });
        expect(bomb.wallMs).toBeLessThan(30_000);
      }
    } finally {
      ending.abort(new Error('enough'));
      await busy;
    }
  });

  test('that leaves zombies takes no room from the next', async () => {
    const code =
      'import os\nfor _ in range(1000):\n    try:\n        if os.fork() == 0: os._exit(0)\n    except OSError: pass';
    expect(await python(box, code, { timeoutMs: 60_000 })).toMatchObject({ cause: 'exit', pidsExceeded: true });
    expect(await python(box, 'import os\nfor _ in range(100): os.fork() or os._exit(0)')).toMatchObject({
      cause: 'exit',
      pidsExceeded: false,
    });
  });

  test('that eats memory is killed for it, and only it is blamed', async () => {
    const eaten = await python(box, 'x = []\nwhile True: x.append(bytearray(10**7))');
    expect(eaten).toMatchObject({ cause: 'signal', exitCode: -9, oomKilled: true });
    expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', oomKilled: false });
    const child = await python(
      box,
      'import subprocess, sys\nsubprocess.run([sys.executable, "-c", "x = []\\nwhile True: x.append(bytearray(10**7))"])',
    );
    expect(child).toMatchObject({ cause: 'exit', exitCode: 0, oomKilled: true });
  });

  test('that eats memory with many small processes does not take the runner along', async () => {
    const code = `
import os, time
for _ in range(100):
    try:
        if os.fork() == 0:
            x = bytearray(4_000_000)
            while True: time.sleep(1)
    except OSError: pass
os.wait()`;
    expect(await python(box, code, { timeoutMs: 30_000 })).toMatchObject({ cause: 'exit', oomKilled: true });
  });

  test('that fills the disk, the inodes or shared memory hits its own limit', async () => {
    const fill = (folder: string) => `
import errno
try:
    with open('${folder}/f', 'wb', 0) as f:
        while True: f.write(b'0' * 10**6)
except OSError as e: print(errno.errorcode[e.errno])`;
    for (const folder of ['/tmp', '/dev/shm', '/work'])
      expect((await python(box, fill(folder))).stdout.toString()).toMatch(/^(ENOSPC|EFBIG)\n$/);
    await run(box, ['sh', '-c', 'head -c 1M /dev/zero > /work/rest']);
    expect(await box.write(bytes({ 'more.txt': 'x'.repeat(100_000) }))).toMatchObject({ ok: false, reason: 'disk' });
    await box.reset();
    const inodes = `
import itertools
try:
    for i in itertools.count(): open(f'i{i}', 'w').close()
except OSError as e: print(e.errno, i > 1000)`;
    expect((await python(box, inodes)).stdout.toString()).toBe('28 True\n');
    const listing = await box.read(CAPS);
    expect([listing.files.size, listing.truncated]).toEqual([100, true]);
  });

  test('cannot hide things from a listing or a reset by depth, size, name or mode', async () => {
    const code = `
import os
os.mkdir('/tmp/.gone-0'); open('/tmp/.gone-1', 'w').close()
for root in ('/tmp', '/dev/shm'):
    os.chdir(root)
    for _ in range(400):
        os.mkdir('d'); open('f', 'w').close(); os.chdir('d')
os.chdir('/work')
os.mkdir('locked'); open('locked/inside', 'w').write('x'); os.chmod('locked/inside', 0); os.chmod('locked', 0)
with open('sparse', 'wb') as f: f.truncate(60 * 2**20)
try:
    while True: os.mkdir('d' * 200); os.chdir('d' * 200)
except OSError: pass
os.chmod('/work', 0)`;
    expect((await python(box, code)).stderr.toString()).toBe('');
    const listing = await box.read(CAPS);
    expect([[...listing.files.keys()], listing.truncated]).toEqual([['locked/inside'], true]);
  });

  test('leaves no shared memory, semaphore or queue behind', async () => {
    const code = `
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print([libc.shmget(0x77, 4096, 0o1600) >= 0, libc.semget(0x77, 1, 0o1600) >= 0, libc.msgget(0x77, 0o1600) >= 0, libc.shmget(0, 4096, 0o1000) >= 0])`;
    const left = `print([len(open('/proc/sysvipc/' + k).readlines()) for k in ('shm', 'sem', 'msg')])`;
    expect((await python(box, code)).stdout.toString()).toBe('[True, True, True, True]\n');
    expect((await python(box, left)).stdout.toString()).toBe('[3, 2, 2]\n');
    await box.reset();
    expect((await python(box, left)).stdout.toString()).toBe('[1, 1, 1]\n');
  });

  test('that floods its output until its deadline costs the driver nothing', async () => {
    const before = process.memoryUsage().rss;
    const result = await run(box, ['cat', '/dev/zero'], { timeoutMs: 2_000, outputBytes: 10_000 });
    expect(result.cause).toBe('timeout');
    expect(result.stdout.length).toBe(10_000);
    expect(result.stdoutBytes).toBeGreaterThan(1_000_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  test('that removes all it can leaves a box that still answers', async () => {
    await run(box, ['sh', '-c', 'rm -rf / 2>/dev/null; rm -rf /work /tmp /dev/shm']);
    expect(await run(box, ['sh', '-c', 'echo here > x && cat x'])).toMatchObject({ cause: 'exit', exitCode: 0 });
  });

  test('that shoots at the runner all the time ends with its own deadline', async () => {
    const code = `
import os, signal
for _ in range(8):
    if os.fork() == 0: break
while True:
    for n in (signal.SIGALRM, signal.SIGCHLD, signal.SIGKILL, signal.SIGSTOP):
        try: os.kill(1, n)
        except OSError: pass`;
    for (let turn = 0; turn < 5; turn += 1)
      expect(await python(box, code, { timeoutMs: 300 })).toMatchObject({ cause: 'timeout' });
  });
});
