// The embedded Redis of one data folder, seen from a command: find it, or have a keeper start it, and wait until
// it answers. Never owned by a command: Ctrl-C reaches a whole process group, and others may have joined.
// Its socket lies in a 0700 folder with a short path (a socket's path ends at 108 bytes), named from the data folder.
import { spawn } from 'node:child_process';
import { closeSync, lstatSync, openSync, realpathSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sha256 } from '../claim.js';
import { childEnvironment } from '../config.js';
import { FarmError, missingError } from '../errors.js';
import { makeFolder } from '../make-folder.js';
/** Long enough to load a large AOF. */
const START_DEADLINE_MS = 120_000;
const KEEPER = fileURLToPath(new URL('../../keeper/main.js', import.meta.url));
/** Makes the folders (0700). Throws FarmError (exit 3) if the data folder cannot be written. */
export function embeddedPaths(config) {
    try {
        makeFolder(path.join(config.dataDir, 'redis'), 0o700);
        const data = realpathSync(config.dataDir);
        const room = path.join(config.runtimeDir, sha256(data).slice(0, 12));
        makeFolder(room, 0o700);
        for (const folder of [config.runtimeDir, room])
            requireOwn(folder);
        const redis = path.join(data, 'redis');
        return {
            data,
            redis,
            socket: path.join(room, 'redis.sock'),
            lock: path.join(redis, 'lock'),
            log: path.join(redis, 'redis.log'),
        };
    }
    catch (error) {
        if (error instanceof FarmError)
            throw error;
        throw missingError('data_unwritable', `the data folder ${config.dataDir} cannot be written: ${error.message}`, 'set FARM_DATA to a folder that can', error);
    }
}
/** The runtime folder has a well-known name: whoever made it before us would own the socket that we talk to. */
function requireOwn(folder) {
    const { uid, mode } = lstatSync(folder);
    if (uid !== process.getuid?.() || (mode & 0o170077) !== 0o040000)
        throw missingError('runtime_folder', `${folder} is not a folder of this user alone (owner ${uid}, mode ${(mode & 0o7777).toString(8)})`, 'remove it, or make it yours with mode 0700');
}
/** The socket of a running embedded Redis, started if need be. Throws FarmError (exit 3) when it does not come. */
export async function ensureEmbedded(config) {
    const paths = embeddedPaths(config);
    const deadline = Date.now() + START_DEADLINE_MS;
    let keeper = null;
    for (;;) {
        const answer = await ask(paths.socket, 'PING', 2_000);
        if (answer?.startsWith('+PONG'))
            return paths.socket;
        const loading = answer?.startsWith('-LOADING') ?? false;
        if (!loading && (keeper === null || keeper.exited === 0))
            keeper = startKeeper(paths);
        if (keeper?.exited)
            throw missingError('redis_start', `the embedded Redis did not start (keeper exit ${keeper.exited})`, `is redis-server installed? ./farm demo installs it; its log is ${paths.log}`);
        if (Date.now() > deadline)
            throw missingError('redis_start', `the embedded Redis did not answer within ${START_DEADLINE_MS / 1000} s`, `see ${paths.log}`);
        await wait(loading ? 200 : 25);
    }
}
function startKeeper(paths) {
    const log = openSync(paths.log, 'a', 0o600);
    const child = spawn(process.execPath, [KEEPER, paths.data, paths.socket], {
        detached: true,
        stdio: ['ignore', log, log],
        cwd: paths.redis,
        env: childEnvironment(),
    });
    closeSync(log);
    const state = { exited: null };
    child.once('exit', (code) => {
        state.exited = code ?? 1;
    });
    child.once('error', () => {
        state.exited = 1;
    });
    child.unref();
    return state;
}
/** One inline command over a fresh connection: the first line of the answer, or null if nobody answers. */
export function ask(socket, command, timeoutMs) {
    return new Promise((resolve) => {
        const connection = net.connect(socket);
        let text = '';
        const done = (answer) => {
            clearTimeout(timer);
            connection.destroy();
            resolve(answer);
        };
        const timer = setTimeout(() => done(null), timeoutMs);
        connection.once('connect', () => connection.write(`${command}\r\n`));
        connection.on('data', (chunk) => {
            text += chunk.toString('latin1');
            if (text.includes('\r\n'))
                done(text);
        });
        connection.once('error', () => done(null));
        connection.once('close', () => done(null));
    });
}
