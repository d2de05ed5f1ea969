// From what a person types to a store: a folder's path, or (not built yet) an S3 address; and from the address of
// a run (`…/runs/RUN`) to its store and its id. Refuses what is neither, with exit 2.
import { statSync } from 'node:fs';
import path from 'node:path';
import { inputError } from '../errors.js';
import { openFolderStore } from './folder.js';
/** A run id as the command line takes it (INTERFACE, environment variables). */
export const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
export async function openStoreAddress(address) {
    const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
    if (scheme === 's3')
        throw inputError('store_not_built', `the store ${address}: S3 stores are not built yet`, 'use a folder, by its path');
    if (scheme !== undefined && scheme !== 'file')
        throw inputError('store_address', `the store ${address}: ${scheme}:// is not a kind of store`, 'use a folder, by its path');
    if (address.trim() === '')
        throw inputError('store_address', 'the store has an empty address', 'use a folder, by its path');
    return openFolderStore(scheme === 'file' ? decodeURIComponent(new URL(address).pathname) : address);
}
/** Splits `…/runs/RUN`, a folder or an address, into the store's address and the run's id. Exit 2 if it is no such folder. */
export function splitRunAddress(dirOrAddress) {
    const s3 = /^(s3:\/\/[^/]+(?:\/.+)?)\/runs\/([^/]+)\/?$/.exec(dirOrAddress);
    if (s3)
        return { root: s3[1], run: runId(s3[2], dirOrAddress) };
    if (/^[a-z][a-z0-9+.-]*:\/\//i.test(dirOrAddress))
        throw inputError('run_address', `${dirOrAddress} is not the address of a run`, 'an address ends in /runs/RUN, as in s3://bucket/prefix/runs/RUN');
    const dir = path.resolve(dirOrAddress);
    let folder = false;
    try {
        folder = statSync(dir).isDirectory();
    }
    catch {
        // not there, or not to be looked at: both mean that there is no such folder for us
    }
    if (!folder)
        throw inputError('run_folder', `${dir}: there is no such folder`, 'name a run, or its folder …/runs/RUN');
    if (path.basename(path.dirname(dir)) !== 'runs')
        throw inputError('run_folder', `${dir} is not the folder of a run`, 'a run lies in …/runs/RUN of its store');
    return { root: path.dirname(path.dirname(dir)), run: runId(path.basename(dir), dir) };
}
function runId(text, where) {
    if (RUN_ID.test(text))
        return text;
    throw inputError('run_id', `${where}: ${JSON.stringify(text)} is not a run id`, `a run id is ${RUN_ID.source}`);
}
