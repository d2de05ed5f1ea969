// From what a person types to a store: a folder's path or an S3 address; and from the address of a run (`…/runs/RUN`)
// to its store and its id. Refuses what is neither, with exit 2.

import { statSync } from 'node:fs';
import path from 'node:path';
import { readConfig } from '../config.ts';
import { inputError } from '../errors.ts';
import { openFolderStore } from './folder.ts';
import { openS3Store } from './s3.ts';
import { isS3Address, parseS3Address } from './s3-address.ts';
import type { S3Settings } from './s3-place.ts';
import type { Store } from './store.ts';

/** A run id as the command line takes it (INTERFACE, environment variables). */
export const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const KINDS = 'use a folder, by its path, or s3://bucket/prefix';

/** Of the run's spec, or of FARM_STORE; `s3` is what the environment says of S3. */
export async function openStoreAddress(address: string, s3: S3Settings = readConfig().s3): Promise<Store> {
  if (isS3Address(address)) return await openS3Store(address, s3);
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(address)?.[1]?.toLowerCase();
  if (scheme !== undefined && scheme !== 'file')
    throw inputError('store_address', `the store ${address}: ${scheme}:// is not a kind of store`, KINDS);
  if (address.trim() === '') throw inputError('store_address', 'the store has an empty address', KINDS);
  return openFolderStore(scheme === 'file' ? decodeURIComponent(new URL(address).pathname) : address);
}

/** Whether two addresses may name one store: told apart only by what cannot be the same. */
export function mayBeOneStore(a: string, b: string): boolean {
  return placeOf(a) === placeOf(b);
}

/** Without what may be said in two ways: the endpoint's name, its region. */
function placeOf(address: string): string {
  const parsed = isS3Address(address) ? parseS3Address(address) : null;
  if (parsed !== null && 'address' in parsed) return `s3://${parsed.address.bucket}/${parsed.address.prefix}`;
  return path.resolve(address.replace(/^file:\/\//, ''));
}

/** Splits `…/runs/RUN`, a folder or an address, into the store's address and the run's id. Exit 2 if it is no such folder. */
export function splitRunAddress(dirOrAddress: string): { root: string; run: string } {
  const s3 = /^(s3:\/\/[^/?]+(?:\/[^?]+)?)\/runs\/([^/?]+)\/?(\?.*)?$/i.exec(dirOrAddress);
  if (s3) return { root: `${s3[1]}${s3[3] ?? ''}`, run: runId(s3[2] as string, dirOrAddress) };
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(dirOrAddress))
    throw inputError(
      'run_address',
      `${dirOrAddress} is not the address of a run`,
      'an address ends in /runs/RUN, as in s3://bucket/prefix/runs/RUN',
    );
  const dir = path.resolve(dirOrAddress);
  let folder = false;
  try {
    folder = statSync(dir).isDirectory();
  } catch {
    // not there, or not to be looked at: both mean that there is no such folder for us
  }
  if (!folder)
    throw inputError('run_folder', `${dir}: there is no such folder`, 'name a run, or its folder …/runs/RUN');
  if (path.basename(path.dirname(dir)) !== 'runs')
    throw inputError('run_folder', `${dir} is not the folder of a run`, 'a run lies in …/runs/RUN of its store');
  return { root: path.dirname(path.dirname(dir)), run: runId(path.basename(dir), dir) };
}

function runId(text: string, where: string): string {
  if (RUN_ID.test(text)) return text;
  throw inputError('run_id', `${where}: ${JSON.stringify(text)} is not a run id`, `a run id is ${RUN_ID.source}`);
}
