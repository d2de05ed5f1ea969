// A folder as the store: one file a key. A put is written beside everything else in `.tmp`, synced, renamed and
// its folder synced, so that a crash leaves all of an object or none. What a crash leaves in `.tmp` is never
// listed and is removed at the next opening once it is an hour old. Links inside the folder are not followed.
// Refuses keys that could leave the folder; a folder that cannot be written is exit 3 with its path.
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rmdir, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import { FarmError, messageOf, missingError } from '../errors.js';
import { compareCodePoints } from '../json/value.js';
import { makeFolder } from '../make-folder.js';
const TEMP_FOLDER = '.tmp';
const TEMP_AGE_MS = 3_600_000;
const KEY_BYTES = 900;
const PUT_TRIES = 4;
const STAT_BATCH = 64;
/** What a read meets where there is simply no such object. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO', 'ENAMETOOLONG']);
/** Opens without writing: the folder is made by the first put (or `probe`), so that looking never creates anything. */
export async function openFolderStore(dir) {
    const root = path.resolve(dir);
    const found = await stat(root).catch(() => null);
    if (found && !found.isDirectory())
        throw missingError('store_unwritable', `the store ${root} is a file, not a folder`, 'name a folder with FARM_STORE or `store`');
    await sweepTemp(path.join(root, TEMP_FOLDER));
    return new FolderStore(root);
}
class FolderStore {
    address;
    temp;
    /** Folders known to be there and synced into their parents. */
    known = new Set();
    constructor(root) {
        this.address = root;
        this.temp = path.join(root, TEMP_FOLDER);
    }
    async put(key, bytes) {
        const target = this.pathOf(key);
        for (let tries = 1;; tries++) {
            try {
                await this.place(target, bytes);
                return;
            }
            catch (error) {
                // A delete elsewhere may have taken the empty folder away between making it and the rename.
                if (codeOf(error) !== 'ENOENT' || tries === PUT_TRIES)
                    throw unwritable(target, error);
                this.known.clear();
            }
        }
    }
    async get(key, range) {
        const target = this.pathOf(key);
        let file;
        try {
            file = await open(target, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
            const found = await file.stat();
            if (!found.isFile())
                return null;
            const from = Math.min(range?.offset ?? 0, found.size);
            return await readFrom(file, from, Math.min(range?.length ?? found.size, found.size - from));
        }
        catch (error) {
            if (ABSENT.has(codeOf(error)))
                return null;
            throw unreadable(target, error);
        }
        finally {
            await file?.close();
        }
    }
    async head(key) {
        const target = this.pathOf(key);
        try {
            const found = await lstat(target);
            return found.isFile() ? found.size : null;
        }
        catch (error) {
            if (ABSENT.has(codeOf(error)))
                return null;
            throw unreadable(target, error);
        }
    }
    async *list(prefix) {
        const cut = prefix.lastIndexOf('/') + 1;
        if (cut > 0)
            this.pathOf(prefix.slice(0, cut - 1));
        yield* this.walk(prefix.slice(0, cut), prefix);
    }
    async *emptyFolders(prefix) {
        this.pathOf(prefix.slice(0, -1));
        yield* this.walkEmpty(prefix);
    }
    async delete(key) {
        const target = this.pathOf(key);
        try {
            await unlink(target);
        }
        catch (error) {
            if (ABSENT.has(codeOf(error)) && codeOf(error) !== 'EISDIR')
                return;
            throw unwritable(target, error);
        }
        for (let dir = path.dirname(target); dir !== this.address; dir = path.dirname(dir)) {
            try {
                await rmdir(dir);
            }
            catch {
                return; // not empty: others live there
            }
            this.known.delete(dir);
        }
    }
    async probe() {
        const key = `probe/${process.pid}-${randomBytes(8).toString('hex')}`;
        const bytes = randomBytes(64);
        await this.put(key, bytes);
        const back = await this.get(key);
        await this.delete(key);
        if (!back?.equals(bytes))
            throw missingError('store_unwritable', `the store ${this.address} does not give back what was written`, 'use another disk');
    }
    async close() { }
    async place(target, bytes) {
        const dir = path.dirname(target);
        await this.makeFolder(this.temp);
        await this.makeFolder(dir);
        const temp = path.join(this.temp, `${process.pid}-${randomBytes(8).toString('hex')}`);
        try {
            const file = await open(temp, 'wx');
            try {
                await file.writeFile(bytes);
                await file.datasync();
            }
            finally {
                await file.close();
            }
            await rename(temp, target);
        }
        catch (error) {
            await unlink(temp).catch(() => { });
            throw error;
        }
        await syncFolder(dir);
    }
    async makeFolder(dir) {
        if (this.known.has(dir))
            return;
        if (dir === this.address)
            makeFolder(dir);
        else {
            await this.makeFolder(path.dirname(dir));
            try {
                await mkdir(dir);
            }
            catch (error) {
                if (codeOf(error) !== 'EEXIST')
                    throw error;
                if (!(await lstat(dir)).isDirectory())
                    throw new Error('something that is not a folder stands in its place');
            }
            await syncFolder(path.dirname(dir));
        }
        this.known.add(dir);
    }
    async *walk(folder, prefix) {
        const entries = (await this.entriesOf(folder)) ?? [];
        // A folder sorts with its slash: that is the order of the keys themselves.
        const named = entries
            .map((e) => ({ key: folder + e.name + (e.isDirectory() ? '/' : ''), isFolder: e.isDirectory() }))
            .filter((e) => e.key !== `${TEMP_FOLDER}/`)
            .filter((e) => e.key.startsWith(prefix) || (e.isFolder && prefix.startsWith(e.key)))
            .sort((a, b) => compareCodePoints(a.key, b.key));
        for (let i = 0; i < named.length; i += STAT_BATCH) {
            const batch = named.slice(i, i + STAT_BATCH);
            const sizes = await Promise.all(batch.map((e) => (e.isFolder ? null : sizeOf(path.join(this.address, e.key)))));
            for (const [j, e] of batch.entries()) {
                const bytes = sizes[j];
                if (e.isFolder)
                    yield* this.walk(e.key, prefix);
                else if (typeof bytes === 'number')
                    yield { key: e.key, bytes };
            }
        }
    }
    async *walkEmpty(folder) {
        const entries = await this.entriesOf(folder);
        if (entries?.length === 0)
            yield folder;
        for (const entry of entries ?? [])
            if (entry.isDirectory())
                yield* this.walkEmpty(`${folder}${entry.name}/`);
    }
    /** Null if there is no such folder. */
    async entriesOf(folder) {
        const dir = path.join(this.address, folder);
        try {
            return await readdir(dir, { withFileTypes: true });
        }
        catch (error) {
            if (ABSENT.has(codeOf(error)))
                return null;
            throw unreadable(dir, error);
        }
    }
    pathOf(key) {
        const segments = key.split('/');
        const odd = segments.some((s) => s === '' || s === '.' || s === '..' || /[\u0000-\u001f\u007f\\]/.test(s));
        if (odd || segments[0] === TEMP_FOLDER || Buffer.byteLength(key) > KEY_BYTES)
            throw new RangeError(`not a key of the store: ${JSON.stringify(key.slice(0, 200))}`);
        return path.join(this.address, ...segments);
    }
}
async function readFrom(file, offset, length) {
    const bytes = Buffer.allocUnsafeSlow(length);
    let filled = 0;
    while (filled < length) {
        const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled);
        if (bytesRead === 0)
            throw new Error(`it ended at byte ${offset + filled} of ${offset + length} while it was read`);
        filled += bytesRead;
    }
    return bytes;
}
async function syncFolder(dir) {
    const folder = await open(dir, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
        await folder.sync();
    }
    finally {
        await folder.close();
    }
}
async function sweepTemp(temp) {
    for (const name of await readdir(temp).catch(() => [])) {
        const file = path.join(temp, name);
        const found = await lstat(file).catch(() => null);
        if (found?.isFile() && Date.now() - found.mtimeMs > TEMP_AGE_MS)
            await unlink(file).catch(() => { });
    }
}
/** Null if it has gone since its folder was read. */
async function sizeOf(file) {
    try {
        return (await lstat(file)).size;
    }
    catch (error) {
        if (ABSENT.has(codeOf(error)))
            return null;
        throw unreadable(file, error);
    }
}
function codeOf(error) {
    return error instanceof Error && 'code' in error ? String(error.code) : '';
}
const REASONS = {
    ENOSPC: ['the disk is full', 'free some space; the run goes on where it was'],
    EDQUOT: ['the disk quota is used up', 'free some space; the run goes on where it was'],
    EROFS: ['the file system is read-only', 'name a writable folder with FARM_STORE or `store`'],
    EACCES: ['permission denied', 'give this user the right to write there, or name another folder with FARM_STORE'],
    EPERM: ['permission denied', 'give this user the right to write there, or name another folder with FARM_STORE'],
    ENOTDIR: ['a file stands where a folder should be', 'name another folder with FARM_STORE or `store`'],
};
function unwritable(target, error) {
    if (error instanceof FarmError)
        return error;
    const [reason, hint] = REASONS[codeOf(error)] ?? [messageOf(error), 'look at the folder and its disk'];
    return missingError('store_unwritable', `the store cannot write ${target}: ${reason}`, hint, error);
}
function unreadable(target, error) {
    if (error instanceof FarmError)
        return error;
    const reason = REASONS[codeOf(error)]?.[0] ?? messageOf(error);
    return missingError('store_unreadable', `the store cannot read ${target}: ${reason}`, 'look at the folder and its disk', error);
}
