// The system calls that a box may make (infra/seccomp.json): what attacks on the kernel need is refused, before the
// kernel looks at it, and what ordinary programs need works.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Box } from '../../src/shared/sandbox.ts';
import { createDockerDriver } from '../../src/workers/rollout/sandbox/docker.ts';
import { LABELS, LIMITS, python, run } from './sandbox-contract.ts';

/** Numbers on x86_64 and on aarch64; null where that machine has no such call. */
const REFUSED: readonly (readonly [string, number, number | null])[] = [
  ['add_key', 248, 217],
  ['request_key', 249, 218],
  ['keyctl', 250, 219],
  ['bpf', 321, 280],
  ['userfaultfd', 323, 282],
  ['perf_event_open', 298, 241],
  ['mount', 165, 40],
  ['umount2', 166, 39],
  ['pivot_root', 155, 41],
  ['chroot', 161, 51],
  ['open_tree', 428, 428],
  ['move_mount', 429, 429],
  ['fsopen', 430, 430],
  ['fsmount', 432, 432],
  ['mount_setattr', 442, 442],
  ['unshare', 272, 97],
  ['setns', 308, 268],
  ['ptrace', 101, 117],
  ['process_vm_readv', 310, 270],
  ['process_vm_writev', 311, 271],
  ['kcmp', 312, 272],
  ['pidfd_getfd', 438, 438],
  ['process_madvise', 440, 440],
  ['io_uring_setup', 425, 425],
  ['io_uring_enter', 426, 426],
  ['io_uring_register', 427, 427],
  ['io_setup', 206, 0],
  ['kexec_load', 246, 104],
  ['kexec_file_load', 320, 294],
  ['init_module', 175, 105],
  ['finit_module', 313, 273],
  ['delete_module', 176, 106],
  ['open_by_handle_at', 304, 265],
  ['name_to_handle_at', 303, 264],
  ['reboot', 169, 142],
  ['swapon', 167, 224],
  ['acct', 163, 89],
  ['quotactl', 179, 60],
  ['syslog', 103, 116],
  ['settimeofday', 164, 170],
  ['clock_settime', 227, 112],
  ['sethostname', 170, 161],
  ['iopl', 172, null],
  ['ioperm', 173, null],
  ['modify_ldt', 154, null],
  ['vmsplice', 278, 75],
  ['memfd_secret', 447, 447],
  ['fanotify_init', 300, 262],
  ['lookup_dcookie', 212, 18],
  ['mq_open', 240, 180],
  ['clone3', 435, 435],
];

describe('the system calls of a box', () => {
  const driver = createDockerDriver({ dockerHost: null });
  let box: Box;

  beforeAll(async () => {
    box = await driver.open(LIMITS, LABELS, new AbortController().signal);
  });
  afterAll(() => driver.close());

  test('leave out what attacks on the kernel need', async () => {
    const calls = REFUSED.map(([name, x86, arm]) => [name, process.arch === 'arm64' ? arm : x86]).filter(
      ([, number]) => number !== null,
    );
    // all arguments bad, so that a call which is let through fails with another error or does nothing
    const code = `
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
for name, number in json.load(sys.stdin):
    ctypes.set_errno(0)
    result = libc.syscall(number, -1, -1, -1, -1, -1, -1)
    print(name, result, ctypes.get_errno())`;
    const result = await python(box, code, { stdin: Buffer.from(JSON.stringify(calls)) });
    const seen = result.stdout.toString().trim().split('\n');
    expect(seen).toHaveLength(calls.length);
    // EPERM, or ENOSYS where a library then does without
    expect(seen.filter((line) => !/ -1 (1|38)$/.test(line))).toEqual([]);
  });

  test('make no namespace, by whichever flag', async () => {
    const code = `
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
number = 220 if platform.machine() == 'aarch64' else 56
got = []
for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x7e020000):
    pid = libc.syscall(number, flag | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    got.append((pid, ctypes.get_errno()))
print(set(got))`;
    expect((await python(box, code)).stdout.toString()).toBe('{(-1, 1)}\n');
    expect((await run(box, ['unshare', '-r', 'id'])).exitCode).not.toBe(0);
  });

  test('open sockets of three families, and of netlink only what lists interfaces', async () => {
    const code = `
import socket
def can(*args):
    try: socket.socket(*args).close(); return True
    except OSError: return False
print([n for n in range(46) if can(n, socket.SOCK_DGRAM) or can(n, socket.SOCK_STREAM) or can(n, socket.SOCK_SEQPACKET) or can(n, socket.SOCK_RAW)])
print([n for n in range(23) if can(socket.AF_NETLINK, socket.SOCK_RAW, n)])`;
    expect((await python(box, code)).stdout.toString()).toBe('[1, 2, 10, 16]\n[0]\n');
  });

  test('are enough for ordinary programs', async () => {
    const code = `
import asyncio, ctypes, ctypes.util, mmap, multiprocessing, os, select, shutil, signal, socket, sqlite3, subprocess, tempfile, threading, time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
def square(n): return n * n
def main():
    with ThreadPoolExecutor(8) as pool: assert sum(pool.map(square, range(100))) == 328350
    with ProcessPoolExecutor(2) as pool: assert sum(pool.map(square, range(100))) == 328350
    queue = multiprocessing.Queue(); queue.put(1); assert queue.get() == 1
    for journal in ('delete', 'wal'):
        db = sqlite3.connect('a.db'); db.execute('pragma journal_mode=' + journal); db.execute('create table if not exists t(x)')
        db.executemany('insert into t values (?)', [(n,) for n in range(1000)]); db.commit(); db.close()
    assert subprocess.run('echo hello | tr a-z A-Z | sort; seq 3 | xargs -P2 -n1 true', shell=True, capture_output=True, check=True).stdout == b'HELLO\\n'
    server = socket.create_server(('127.0.0.1', 0)); client = socket.create_connection(server.getsockname())
    peer, _ = server.accept(); client.sendall(b'x'); assert peer.recv(1) == b'x'
    socket.socketpair()
    assert socket.if_nameindex()
    async def later():
        process = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
        assert (await process.communicate(b'in'))[0] == b'in'
        await asyncio.sleep(0.01)
    asyncio.run(later())
    m = mmap.mmap(-1, 4096); m[:2] = b'ok'
    fd = os.memfd_create('m'); os.write(fd, b'x'); os.close(fd)
    with tempfile.TemporaryDirectory() as folder:
        open(folder + '/a', 'w').write('x' * 100000); shutil.copy2(folder + '/a', folder + '/b'); shutil.copytree(folder, folder + '/c')
        os.sendfile(os.open(folder + '/d', os.O_WRONLY | os.O_CREAT), os.open(folder + '/a', os.O_RDONLY), 0, 100000)
    signal.setitimer(signal.ITIMER_REAL, 0.01); signal.sigwait([signal.SIGALRM])
    os.sched_getaffinity(0); os.nice(1); os.getrandom(8); os.sync(); os.getloadavg(); os.pidfd_open(os.getpid())
    epoll = select.epoll(); epoll.register(peer); epoll.poll(0)
    print('all of it')
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
if __name__ == '__main__': main()`;
    const result = await python(box, code, { timeoutMs: 30_000 });
    expect(result.stderr.toString()).toBe('');
    expect(result.stdout.toString()).toBe('all of it\n');
    const shell =
      'set -e; mkdir d; cd d; (sleep 0.1; echo late) & wait; mkfifo p; cat p > out & echo through > p; wait; cat out; trap "echo trapped" USR1; kill -USR1 $$; tar cf - . | tar tf - | sort | head -1; find . -type f | wc -l; sync';
    expect((await run(box, ['sh', '-c', shell])).stdout.toString()).toBe('late\nthrough\ntrapped\n./\n1\n');
    await box.reset();
  });
});
