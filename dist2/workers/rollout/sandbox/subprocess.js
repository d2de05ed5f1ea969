// Boxes as plain folders, commands as plain child processes: for trusted, scripted use only. Same contract, no
// isolation: no limit on memory, processes or disk holds here, and what runs can read what the worker can.
// What a command leaves running is found by its process group and by the box's folder as HOME in its environment.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants, lstatSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chmod, lstat, mkdir, mkdtemp, open, readdir, rm } from 'node:fs/promises';
import { availableParallelism, hostname, tmpdir, totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import { messageOf } from '../../../shared/errors.js';
import { BoxLost, } from '../../../shared/sandbox.js';
import { within } from '../../../shared/within.js';
import { byCodePoint, decodeText, placePath } from './box-text.js';
import { commandOf, shownFiles } from './grading.js';
import { checkLaunch, DEFAULT_PATH, Head, notStarted, signalNumber } from './launch.js';
const MAX_DEPTH = 64;
/** For the rest of the output once everything that could write is dead. */
const DRAIN_MS = 500;
export function createSubprocessDriver() {
    const boxes = new Set();
    // the folders of a worker that ends without closing its boxes
    const atExit = () => {
        for (const box of boxes)
            box.removeNow();
    };
    process.on('exit', atExit);
    return {
        kind: 'subprocess',
        answers: async () => true,
        engine: async () => ({
            id: `host-${hostname()}`,
            cpus: availableParallelism(),
            memoryMb: Math.floor(totalmem() / 1024 ** 2),
            architecture: process.arch,
            runtimes: [],
        }),
        prepare: async () => ({ imageId: 'subprocess', runnerHash: null }),
        async open(_limits, _labels, signal) {
            signal.throwIfAborted();
            const started = performance.now();
            try {
                const root = await mkdtemp(`${tmpdir()}/rollout-farm-box-`);
                const box = new FolderBox(root, () => boxes.delete(box), started);
                boxes.add(box);
                await mkdir(box.work);
                return box;
            }
            catch (error) {
                throw new BoxLost('start', 'engine', 'start:folder', messageOf(error), error);
            }
        },
        sweep: async () => 0,
        async close() {
            await Promise.all([...boxes].map((box) => box.close()));
            process.off('exit', atExit);
        },
    };
}
class FolderBox {
    imageId = 'subprocess';
    runnerHash = null;
    isolation = 'subprocess';
    startMs;
    work;
    #root;
    #forget;
    #queue = Promise.resolve();
    #child = null;
    #closing = null;
    constructor(root, forget, started) {
        this.#root = root;
        // of its own length of randomness: it is the mark by which processes are found
        this.work = `${root}/work-${randomBytes(8).toString('hex')}`;
        this.#forget = forget;
        this.startMs = performance.now() - started;
    }
    get well() {
        return this.#closing === null;
    }
    run(command) {
        return this.#oneByOne(async () => {
            command.signal?.throwIfAborted();
            const check = checkLaunch(command, this.work, DEFAULT_PATH);
            if (check.status === 'refused')
                return notStarted(check.code, check.message);
            return this.#run(command, check.launch);
        });
    }
    async #run(command, launch) {
        const started = performance.now();
        const env = Object.fromEntries(launch.env.map((pair) => {
            const text = pair.toString('utf8');
            return [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)];
        }));
        const [program, ...rest] = launch.argv.map((one) => one.toString('utf8'));
        const stdout = new Head(command.outputBytes);
        const stderr = new Head(command.outputBytes);
        let child;
        try {
            // a session of its own: Ctrl-C on the worker is not its command's
            child = spawn(program, rest, { cwd: this.work, env, detached: true, stdio: 'pipe' });
        }
        catch (error) {
            return notStarted(error.code ?? 'EINVAL', messageOf(error));
        }
        this.#child = child;
        child.stdout.on('data', (chunk) => stdout.take(chunk));
        child.stderr.on('data', (chunk) => stderr.take(chunk));
        const drained = new Promise((resolve) => child.once('close', () => resolve()));
        child.stdin.on('error', () => { }); // it need not read what it is given
        child.stdin.end(command.stdin ?? new Uint8Array(0));
        let timer;
        let abort = () => { };
        const end = await new Promise((resolve) => {
            child.once('error', (error) => resolve({ status: 'launch', error }));
            child.once('exit', (code, signal) => resolve({ status: 'exit', code, signal }));
            timer = setTimeout(() => resolve({ status: 'timeout' }), Math.min(command.timeoutMs, 2 ** 31 - 1));
            abort = () => resolve({ status: 'aborted' });
            command.signal?.addEventListener('abort', abort, { once: true });
        });
        const wallMs = performance.now() - started;
        clearTimeout(timer);
        command.signal?.removeEventListener('abort', abort);
        this.#killAll();
        if (end.status !== 'launch')
            await within(drained, DRAIN_MS, null);
        child.stdout.destroy();
        child.stderr.destroy();
        this.#child = null;
        command.signal?.throwIfAborted();
        if (end.status === 'launch')
            return notStarted(end.error.code ?? 'EINVAL', end.error.message);
        const number = end.status === 'exit' && end.signal !== null ? signalNumber(end.signal) : 0;
        return {
            cause: end.status !== 'exit' ? 'timeout' : number > 0 ? 'signal' : 'exit',
            exitCode: end.status !== 'exit' ? -1 : number > 0 ? -number : (end.code ?? -1),
            launchError: null,
            stdout: stdout.content(),
            stderr: stderr.content(),
            stdoutBytes: stdout.bytes,
            stderrBytes: stderr.bytes,
            oomKilled: false,
            pidsExceeded: false,
            diskFull: false,
            wallMs,
        };
    }
    write(files) {
        return this.#oneByOne(async () => {
            const placed = [...files].map(([path, content]) => ({ path, content, place: placePath(path) }));
            for (const { path, place } of placed)
                if (place.status !== 'inside')
                    return { ok: false, path, reason: place.status === 'escape' ? 'escape' : 'other', message: place.message };
            for (const { path, content, place } of placed) {
                if (place.status !== 'inside')
                    continue;
                try {
                    if (!(await this.#place(place.bytes, content)))
                        return { ok: false, path, reason: 'escape', message: 'a link stands in its way' };
                }
                catch (error) {
                    const code = error.code ?? '';
                    return {
                        ok: false,
                        path,
                        reason: code === 'ENOSPC' || code === 'EDQUOT' ? 'disk' : 'other',
                        message: code || messageOf(error),
                    };
                }
            }
            return { ok: true };
        });
    }
    /** False: a link stands in the way. */
    async #place(path, content) {
        const target = this.#at(path);
        for (let at = path.indexOf(0x2f); at !== -1; at = path.indexOf(0x2f, at + 1)) {
            const folder = this.#at(path.subarray(0, at));
            await mkdir(folder).catch((error) => {
                if (error.code !== 'EEXIST')
                    throw error;
            });
            if ((await lstat(folder)).isSymbolicLink())
                return false;
        }
        const there = await lstat(target).catch(() => null);
        if (there !== null && !there.isFile() && !there.isDirectory())
            await rm(target);
        const file = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o644);
        try {
            await file.writeFile(content);
        }
        finally {
            await file.close();
        }
        return true;
    }
    #at(path) {
        return Buffer.concat([Buffer.from(`${this.work}/`), path]);
    }
    /** There is no other user here: the check is a plain command over all the files, and the grade says `exit`. */
    async grade(check) {
        await this.reset();
        const files = new Map([...shownFiles(check), ...check.hidden]);
        const written = await this.write(files);
        if (!written.ok) {
            const { path, reason, message } = written;
            return { status: 'not_laid', hidden: check.hidden.has(path), path, reason, message };
        }
        const result = await this.run(commandOf(check));
        const passed = result.cause === 'exit' && result.exitCode === 0;
        return { ...result, status: 'graded', level: 'exit', passed, why: null, candidateSignal: null };
    }
    read(caps) {
        return this.#oneByOne(async () => {
            const found = [];
            let truncated = false;
            const folders = [{ bytes: Buffer.alloc(0), depth: 1 }];
            for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
                for (const entry of await readdir(this.#at(folder.bytes), { withFileTypes: true, encoding: 'buffer' })) {
                    const slash = folder.bytes.length === 0 ? [] : [folder.bytes, Buffer.from('/')];
                    const bytes = Buffer.concat([...slash, entry.name]);
                    if (entry.isFile())
                        found.push({ bytes, path: decodeText(bytes) });
                    else if (entry.isDirectory() && folder.depth < MAX_DEPTH)
                        folders.push({ bytes, depth: folder.depth + 1 });
                    else if (entry.isDirectory())
                        truncated = true;
                }
            }
            found.sort((a, b) => byCodePoint(a.path, b.path));
            const files = new Map();
            let left = caps.maxBytes;
            for (const { path, bytes } of found) {
                const file = files.size < caps.maxEntries ? await open(this.#at(bytes), constants.O_RDONLY | constants.O_NOFOLLOW) : null;
                try {
                    if (file === null || (await file.stat()).size > left) {
                        truncated = true;
                        continue;
                    }
                    const content = await file.readFile();
                    left -= content.length;
                    files.set(path, content);
                }
                finally {
                    await file?.close();
                }
            }
            return { files, truncated };
        });
    }
    reset() {
        return this.#oneByOne(async () => {
            this.#killAll();
            await rm(this.work, { recursive: true, force: true });
            await mkdir(this.work);
            if (this.#strays().length > 0)
                throw new BoxLost('run', 'action', 'reset:process', 'a process outlived the reset');
        });
    }
    close() {
        this.#closing ??= (async () => {
            this.#killAll();
            await this.#queue;
            this.#killAll();
            await chmod(this.#root, 0o700).catch(() => { });
            await rm(this.#root, { recursive: true, force: true, maxRetries: 3 }).catch(() => { });
            this.#forget();
        })();
        return this.#closing;
    }
    /** At the worker's exit, where nothing can be waited for. */
    removeNow() {
        this.#killAll();
        rmSync(this.#root, { recursive: true, force: true });
    }
    #killAll() {
        const pid = this.#child?.pid;
        if (pid !== undefined)
            signalIfThere(-pid);
        // a process may fork while the list is read
        for (let turn = 0; turn < 10; turn += 1) {
            const strays = this.#strays();
            if (strays.length === 0)
                return;
            for (const stray of strays)
                signalIfThere(stray);
        }
    }
    #strays() {
        const mark = `HOME=${this.work}`;
        let names;
        try {
            names = readdirSync('/proc');
        }
        catch {
            return []; // no /proc: the process group has to do
        }
        return names.filter((name) => /^\d+$/.test(name) && carries(name, mark)).map(Number);
    }
    #oneByOne(work) {
        const next = this.#queue.then(() => {
            if (this.#closing !== null)
                throw new BoxLost('run', 'engine', 'closed', 'the box is closed');
            return work();
        });
        this.#queue = next.catch(() => { });
        return next;
    }
}
/** Zombies have no environment any more, so they do not count. */
function carries(pid, mark) {
    try {
        if (lstatSync(`/proc/${pid}`).uid !== process.getuid?.())
            return false;
        return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(mark);
    }
    catch {
        return false;
    }
}
function signalIfThere(pid) {
    try {
        process.kill(pid, 'SIGKILL');
    }
    catch {
        // it has ended by itself
    }
}
