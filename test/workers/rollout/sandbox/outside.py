# A container as the host's root sees it, without entering it by the engine: reads a line with the pid of its first process, answers
# with a line of JSON. `same` has to be what it was, `left` has to be empty.
import ctypes, json, os, re, sys

libc = ctypes.CDLL(None, use_errno=True)
FOLDERS = ('/work', '/tmp', '/dev/shm', '/dev/mqueue', '/judge')


def text(path):
    with open(path, errors='replace') as f: return f.read()


def cgroup(pid, controller, name):
    for line in text(f'/proc/{pid}/cgroup').splitlines():
        _, controllers, place = line.split(':', 2)
        if controller in controllers.split(','): return f'/sys/fs/cgroup/{controller}{place}/{name[0]}'
    for line in text(f'/proc/{pid}/cgroup').splitlines():
        if line.startswith('0::'): return f'/sys/fs/cgroup{line[3:]}/{name[1]}'


def shared(pid):
    """SysV objects in the container's namespace: in a child, which enters it."""
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        fd = os.open(f'/proc/{pid}/ns/ipc', os.O_RDONLY)
        if libc.setns(fd, 0) != 0: os._exit(1)
        lines = [f'{kind}: {" ".join(line.split()[:2])}' for kind in ('shm', 'sem', 'msg') for line in text(f'/proc/sysvipc/{kind}').splitlines()[1:]]
        os.write(w, json.dumps(lines[:50]).encode()); os._exit(0)
    os.close(w)
    with os.fdopen(r) as f: got = f.read()
    if os.waitpid(child, 0)[1] != 0: raise OSError('cannot enter the IPC namespace')
    return json.loads(got)


def sockets(pid):
    found = []
    for table in ('tcp', 'tcp6', 'udp', 'udp6', 'udplite', 'raw', 'raw6', 'icmp', 'unix', 'packet'):
        try: found += [f'{table}: {line.strip()}' for line in text(f'/proc/{pid}/net/{table}').splitlines()[1:]]
        except FileNotFoundError: pass
    return found[:50]


def survey(pid):
    root, left, same = f'/proc/{pid}/root', [], {}
    procs = text(cgroup(pid, 'pids', ('cgroup.procs', 'cgroup.procs'))).split()
    left += [f'process {p}: {text(f"/proc/{p}/status").splitlines()[0]}' for p in procs if p != str(pid)]
    count = int(text(cgroup(pid, 'pids', ('pids.current', 'pids.current'))))
    if count != 1: left.append(f'{count} tasks in the cgroup')
    devices = set()
    owner = {os.stat(root + '/work').st_uid}
    for folder in FOLDERS:
        path = root + folder
        if not os.path.isdir(path): continue
        stat, use = os.stat(path), os.statvfs(path)
        if folder in ('/work', '/judge'): owner.add(stat.st_uid)
        devices.add(f'{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}')
        left += [f'{folder}/{name!r}'[:80] for name in os.listdir(path.encode())[:20]]
        left += [f'{folder} has the attribute {name}' for name in os.listxattr(path) if name.startswith(('user.', 'system.'))]
        if folder != '/dev/mqueue' and use.f_files - use.f_ffree != 1: left.append(f'{folder}: {use.f_files - use.f_ffree} inodes')
        if stat.st_mtime < 1e9: left.append(f'{folder} is of {stat.st_mtime}')
        same[folder] = [oct(stat.st_mode), stat.st_uid, stat.st_gid, use.f_blocks]
    left += [line for line in text('/proc/locks').splitlines() if any(f' {d}:' in line for d in devices)]
    left += shared(pid) + sockets(pid)
    left += [f'key user {line}' for line in text('/proc/key-users').splitlines() if int(line.split(':')[0]) in owner]
    left += [f'key {line}' for line in text('/proc/keys').splitlines() if len(line.split()) > 5 and line.split()[5].isdigit() and int(line.split()[5]) in owner]
    left += [f'terminal {name}' for name in os.listdir(root + '/dev/pts') if name != 'ptmx']
    fields = text(f'/proc/{pid}/stat').rsplit(')', 1)[1].split()
    same['priority'] = [fields[i] for i in (15, 16, 38)]
    status = dict(line.split(':\t', 1) for line in text(f'/proc/{pid}/status').splitlines() if ':\t' in line)
    same['status'] = {k: status.get(k) for k in ('Uid', 'Gid', 'Groups', 'Threads', 'SigBlk', 'SigIgn', 'SigCgt', 'CapEff', 'CapPrm', 'Cpus_allowed', 'TracerPid', 'State') if k != 'State'}
    same['limits'] = text(f'/proc/{pid}/limits')
    same['oom'] = text(f'/proc/{pid}/oom_score_adj')
    same['cwd'] = [os.readlink(f'/proc/{pid}/{name}') for name in ('cwd', 'exe')]
    same['fds'] = sorted(f'{fd} {re.sub(r"[0-9]+", "N", os.readlink(f"/proc/{pid}/fd/{fd}"))}' for fd in os.listdir(f'/proc/{pid}/fd'))
    same['mounts'] = text(f'/proc/{pid}/mountinfo')
    same['dev'] = sorted(os.listdir(root + '/dev'))
    memory = int(text(cgroup(pid, 'memory', ('memory.usage_in_bytes', 'memory.current'))))
    return {'left': left, 'same': same, 'memory': memory, 'rss': int(status['VmRSS'].split()[0]) * 1024}


for line in sys.stdin:
    try: answer = survey(int(line))
    except Exception as error: answer = {'error': f'{type(error).__name__}: {error}'}
    sys.stdout.write(json.dumps(answer) + '\n')
    sys.stdout.flush()
