// The keeper owns the embedded Redis of one data folder: it runs in a session of its own, starts redis-server under
// a lock (a second server on the same folder would issue the same tokens and drop the other's keys), starts it again if it dies,
// and stops it two seconds after the last client has gone.
//
//   start ──lock taken by another──> exit 0
//     │
//     └─> serving ──dies──> serving (again, at most 20 times)
//            └──nobody for 2 s, or SIGTERM──> stopping ──> exit 0
import { spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
const LOCK_TAKEN = 75;
const IDLE_MS = 2_000;
/** The command that had us started needs a moment to connect. */
const GRACE_MS = 5_000;
const MAX_RESTARTS = 20;
const [data, socket] = process.argv.slice(2);
const conf = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));
let stopping = false;
let restarts = 0;
process.on('SIGINT', () => { });
process.on('SIGHUP', () => { });
process.on('SIGTERM', () => {
    stopping = true;
});
function serve() {
    // Killed together with us (pdeathsig), and the lock is a descriptor of the server itself: a kill frees it.
    const server = [
        'redis-server',
        conf,
        '--port',
        '0',
        '--unixsocket',
        socket,
        '--unixsocketperm',
        '700',
        '--dir',
        path.join(data, 'redis'),
    ];
    return spawn('setpriv', [
        '--pdeathsig',
        'TERM',
        '--',
        'flock',
        '--no-fork',
        '-n',
        '-E',
        String(LOCK_TAKEN),
        path.join(data, 'redis', 'lock'),
        ...server,
    ], {
        stdio: ['ignore', 'inherit', 'inherit'],
        cwd: path.join(data, 'redis'),
    });
}
async function main() {
    let exit = null;
    let child = serve();
    const watch = (c) => {
        exit = null;
        c.once('error', () => {
            exit = 127;
        });
        c.once('exit', (code) => {
            exit = code ?? 1;
        });
    };
    watch(child);
    const redis = new Redis({
        path: socket,
        lazyConnect: true,
        enableOfflineQueue: false,
        retryStrategy: () => 50,
        maxRetriesPerRequest: 0,
        commandTimeout: 5_000,
    });
    redis.on('error', () => { });
    redis.connect().catch(() => { });
    const began = Date.now();
    let lastSeen = Date.now();
    for (;;) {
        await wait(250);
        if (exit === LOCK_TAKEN)
            return 0;
        if (exit === 127)
            return 3;
        if (exit !== null) {
            if (stopping)
                return 0;
            if (++restarts > MAX_RESTARTS || Date.now() - began < 1_000)
                return 3;
            child = serve();
            watch(child);
            lastSeen = Date.now();
            continue;
        }
        const others = await clients(redis);
        if (others !== 0)
            lastSeen = Date.now();
        const idle = Date.now() - lastSeen > IDLE_MS && Date.now() - began > GRACE_MS;
        if (!stopping && !idle)
            continue;
        stopping = true;
        redis.disconnect();
        child.kill('SIGTERM');
        const deadline = Date.now() + 10_000;
        while (exit === null && Date.now() < deadline)
            await wait(50);
        if (exit === null)
            child.kill('SIGKILL');
        return 0;
    }
}
/** Connections beside our own; unknown (−1) while it does not answer. */
async function clients(redis) {
    try {
        const info = await redis.info('clients');
        return Number(/connected_clients:(\d+)/.exec(info)?.[1] ?? 0) - 1;
    }
    catch {
        return -1;
    }
}
process.exit(await main());
