# What an episode may leave behind, one function a kind; run in a box as `plants.py KIND...`. Prints, as JSON, what was
# planted and what was refused. Nothing here waits for what it started.
import ctypes, errno, fcntl, json, os, select, signal, socket, struct, sys, threading, time

libc = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == 'x86_64'
ROOTS = ('/work', '/tmp', '/dev/shm')


def child(work, deaf=True, session=True):
    """A process of its own that outlives the command if nobody kills it."""
    r, w = os.pipe()
    if os.fork() == 0:
        try:
            if session: os.setsid()
            if os.fork() == 0:
                if deaf:
                    for n in range(1, 65):
                        try: signal.signal(n, signal.SIG_IGN)
                        except (OSError, ValueError): pass
                os.close(r)
                keep = work()
                os.write(w, b'.')
                for fd in (0, 1, 2): os.close(fd)
                while True: time.sleep(1000)
        finally:
            os._exit(0)
    os.close(w)
    return os.read(r, 1) == b'.'


def write(path, text='x'):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f: f.write(text)


# --- files

def locked_folders():
    for root in ROOTS:
        write(f'{root}/locked/inner/file')
        os.chmod(f'{root}/locked/inner/file', 0)
        os.chmod(f'{root}/locked/inner', 0)
        os.chmod(f'{root}/locked', 0)

def odd_names():
    for root in ROOTS:
        for name in (b'-rf', b'--', b' ', b'\n', b'a\nb', b'*', b'\xff\xfe', b'\x01\x7f', 'ü \U0001f600'.encode(), b'...', b'.gone-0', b'.gone-1', b'n' * 255, b'\xc3' * 255, b'$(x)', b'\\'):
            path = root.encode() + b'/' + name
            os.mkdir(path)
            open(path + b'/' + name, 'w').close()

def deep_tree():
    for root in ROOTS:
        os.chdir(root)
        for _ in range(300):
            os.mkdir('d'); open('f', 'w').close(); os.chdir('d')
    os.chdir('/work')
    try:
        for _ in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)
    except OSError: pass
    os.chdir('/work')

def wide_tree():
    for i in range(20):
        os.mkdir(f'/work/w{i}')
        for j in range(150): open(f'/work/w{i}/{j}', 'w').close()

def many_entries():
    for i in range(6000): open(f'/work/e{i}', 'w').close()
    for i in range(2000): os.mkdir(f'/tmp/e{i}')

def immutable_looking():
    for i, mode in enumerate((0, 0o444, 0o1777, 0o2777, 0o4777, 0o6777, 0o7000)):
        write(f'/work/m{i}')
        os.chmod(f'/work/m{i}', mode)
        os.mkdir(f'/tmp/m{i}')
        os.chmod(f'/tmp/m{i}', mode)

def hard_links():
    write('/work/origin')
    for i in range(500): os.link('/work/origin', f'/work/link{i}')

def symbolic_links():
    for root in ROOTS:
        os.symlink('/etc/passwd', f'{root}/out')
        os.symlink('loop', f'{root}/loop')
        os.symlink('/work', f'{root}/folder')
        os.symlink('x' * 4000, f'{root}/long')
    os.symlink('/proc/1/root', '/work/runner')

def pipes_and_sockets():
    for root in ROOTS:
        os.mkfifo(f'{root}/pipe')
        s = socket.socket(socket.AF_UNIX); s.bind(f'{root}/socket')

def sparse_file():
    with open('/work/sparse', 'wb') as f: f.truncate(60 * 2**20)
    with open('/dev/shm/full', 'wb') as f:
        try:
            while True: f.write(b'0' * 2**16); f.flush()
        except OSError: pass
        try: f.close()
        except OSError: pass

def hooks():
    v = f'python{sys.version_info[0]}.{sys.version_info[1]}'
    for path in (f'/work/.local/lib/{v}/site-packages/usercustomize.py', f'/work/.local/lib/{v}/site-packages/x.pth', '/work/sitecustomize.py',
                 '/work/conftest.py', '/work/random.py', '/work/__pycache__/random.pyc', '/work/.pythonrc', '/work/.bashrc', '/work/.profile', '/work/.config/autostart/x',
                 '/work/.git/hooks/pre-commit', '/work/.ssh/authorized_keys', '/tmp/.X11-unix/X0', '/work/.pam_environment', '/work/pyvenv.cfg', '/work/.pdbrc'):
        write(path, 'raise SystemExit(0)')

def crontab():
    for path in ('/var/spool/cron/crontabs/root', '/etc/cron.d/x', '/etc/crontab', '/var/spool/at/x', '/etc/environment', '/etc/ld.so.preload', '/usr/lib/python3/x.pth'):
        try:
            write(path)
            return True
        except OSError: pass
    return False

def environment():
    os.environ['PYTHONSTARTUP'] = '/work/.pythonrc'
    write('/work/.pythonrc')
    return child(lambda: None)

def attributes():
    done = False
    for path in ('/work', '/tmp', '/dev/shm'):
        try: os.setxattr(path, 'user.left', b'x'); done = True
        except OSError: pass
    try:
        me = os.getuid()
        acl = struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *e) for e in ((1, 7, 0xffffffff), (2, 7, me), (4, 0, 0xffffffff), (16, 7, 0xffffffff), (32, 0, 0xffffffff)))
        os.setxattr('/work', 'system.posix_acl_default', acl); done = True
    except OSError: pass
    fd = os.open('/work', os.O_RDONLY)
    try: fcntl.ioctl(fd, 0x40086602, struct.pack('L', 0xc0)); done = True
    except OSError: pass
    os.utime('/work', (1, 1))
    return done

def folder_mode():
    os.utime('/work', (1, 1))
    os.chmod('/work', 0o3000)

def held_files():
    def hold():
        kept = []
        for i, root in enumerate(ROOTS):
            f = open(f'{root}/held', 'w+'); f.write('x' * 10000); f.flush(); os.unlink(f'{root}/held'); kept.append(f)
            try: kept.append(os.open(root, os.O_TMPFILE | os.O_RDWR))
            except OSError: pass
        kept.append(os.memfd_create('left'))
        return kept
    return child(hold)

def removed_cwd():
    os.makedirs('/work/gone/gone')
    done = child(lambda: (os.chdir('/work/gone/gone'), os.rmdir('/work/gone/gone'), os.rmdir('/work/gone')))
    return done

# --- processes

def daemons():
    return all([child(lambda: None) for _ in range(5)])

def stopped():
    def stop():
        if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)
    return child(stop)

def zombies():
    def leave():
        for _ in range(20):
            if os.fork() == 0: os._exit(0)
    return child(leave, deaf=False)

def forking():
    def fork_on():
        for _ in range(8):
            if os.fork() == 0:
                while True:
                    try:
                        if os.fork(): os._exit(0)
                    except OSError: pass
    return child(fork_on)

def full_of_processes():
    for _ in range(300):
        try:
            if os.fork() == 0:
                os.setsid()
                while True: time.sleep(1000)
        except OSError: return True
    return False

def subreaper():
    return child(lambda: (libc.prctl(36, 1, 0, 0, 0), [os.fork() or (os.setsid(), time.sleep(1000)) for _ in range(2)] if False else None, os.fork() == 0 and time.sleep(1000)))

def traced():
    def trace():
        pid = os.fork()
        if pid == 0:
            libc.ptrace(0, 0, 0, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(1000)
        os.waitpid(pid, os.WUNTRACED)
    return child(trace)

def threads():
    return child(lambda: [threading.Thread(target=time.sleep, args=(1000,)).start() for _ in range(10)])

def at_the_runner():
    """Tries what it may while the runner has this uid to kill."""
    def shoot():
        for _ in range(4):
            if os.fork() == 0: break
        mask = struct.pack('128s', b'\x01')
        while True:
            libc.setpriority(0, 1, 19)
            libc.sched_setaffinity(1, 128, mask)
            if X86: libc.syscall(251, 1, 1, 3 << 13)
            try: os.kill(1, signal.SIGALRM)
            except OSError: pass
    if os.fork() == 0:
        os.setsid()
        for n in (1, 2, 3, 15):
            signal.signal(n, signal.SIG_IGN)
        shoot()
    time.sleep(0.02)
    return True

# --- sockets and memory

def unix_sockets():
    def listen():
        a = socket.socket(socket.AF_UNIX); a.bind('\0left'); a.listen()
        b = socket.socket(socket.AF_UNIX); b.bind('/tmp/listening'); b.listen()
        c = socket.socket(socket.AF_UNIX); c.connect('\0left')
        return a, b, c
    return child(listen)

def sockets_in_flight():
    a, b = socket.socketpair()
    for i in range(5):
        c, d = socket.socketpair()
        f = open(f'/work/flight{i}', 'w'); os.unlink(f'/work/flight{i}')
        socket.send_fds(a, [b'x'], [b.fileno(), c.fileno(), d.fileno(), f.fileno()])
        socket.send_fds(b, [b'x'], [a.fileno(), c.fileno()])
    return True

def network():
    def serve():
        s = socket.create_server(('127.0.0.1', 4567)); kept = [s]
        for _ in range(5):
            c = socket.create_connection(('127.0.0.1', 4567)); d, _ = s.accept()
            d.sendall(b'x' * 1000)
            kept += [c, d]
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 4568)); kept.append(u)
        return kept
    s = socket.create_server(('127.0.0.1', 4569))
    c = socket.create_connection(('127.0.0.1', 4569)); d, _ = s.accept()
    c.close(); d.close(); s.close()
    return child(serve)

def shm_sysv():
    one = libc.shmget(0x77, 4096, 0o1600)
    libc.shmat.restype = ctypes.c_void_p
    two = libc.shmget(0, 65536, 0o1000)
    done = child(lambda: (libc.shmat(one, None, 0), libc.shmctl(two, 0, None)))
    for _ in range(100): libc.shmget(0, 4096, 0o1000)
    return one >= 0 and done

def sem_sysv():
    ids = [libc.semget(0x80 + i, 3, 0o1000) for i in range(10)]
    undo = struct.pack('HhH', 0, 1, 0x1000)
    child(lambda: libc.semop(ids[0], undo, 1))
    return ids[0] >= 0

def msg_sysv():
    queue = libc.msgget(0x79, 0o1600)
    text = struct.pack('l1000s', 1, b'left')
    while libc.msgsnd(queue, text, 1000, 0o4000) == 0: pass
    return queue >= 0

def posix_shm():
    for i in range(20): write(f'/dev/shm/sem.left{i}')
    return True

def posix_mq():
    try: rt = ctypes.CDLL('librt.so.1', use_errno=True)
    except OSError: rt = libc
    try: return rt.mq_open(b'/left', os.O_CREAT | os.O_RDWR, 0o666, None) >= 0
    except AttributeError: return False

# --- what belongs to an uid, a file or a clock

def keyrings():
    if not X86: return False
    added = libc.syscall(248, b'user', b'left', b'secret', 6, -4) >= 0
    joined = libc.syscall(250, 1, b'left', 0, 0, 0) >= 0
    persistent = libc.syscall(250, 22, -1, -3, 0, 0) >= 0
    return added or joined or persistent

def file_locks():
    def lock():
        f = open('/work/lock', 'w+'); fcntl.flock(f, fcntl.LOCK_EX)
        g = open('/tmp/lock', 'w+'); fcntl.lockf(g, fcntl.LOCK_EX)
        h = open('/work/lease', 'w'); h.close(); h = open('/work/lease'); fcntl.fcntl(h, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        return f, g, h
    return child(lock)

def watches():
    def watch():
        fd = libc.inotify_init()
        for root in ROOTS: libc.inotify_add_watch(fd, root.encode(), 0xfff)
        e = select.epoll()
        return fd, e, os.eventfd(1)
    return child(watch)

def timers():
    def arm():
        signal.setitimer(signal.ITIMER_REAL, 1000)
        timer = ctypes.c_void_p()
        for _ in range(20): libc.timer_create(0, None, ctypes.byref(timer))
        return [libc.timerfd_create(0, 0) for _ in range(5)]
    return child(arm)

def terminals():
    pairs = [os.openpty() for _ in range(3)]
    def control():
        os.setsid()
        fd = os.open(os.ttyname(pairs[0][1]), os.O_RDWR)
        fcntl.ioctl(fd, 0x540e, 0)
        return fd
    return child(control, deaf=False)


if __name__ == '__main__':
    told = {}
    for kind in sys.argv[1:]:
        try: told[kind] = globals()[kind]() is not False
        except Exception as error: told[kind] = f'{type(error).__name__}: {error}'
    sys.stdout.write(json.dumps(told))
    sys.stdout.flush()
    os._exit(0)
