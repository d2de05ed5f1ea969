// What the file system says when a folder store cannot read or write, with the next step. Always exit 3: a part of the
// farm is not usable, and whoever waits for it waits at no cost.

import { codeOf, FarmError, messageOf, missingError } from '../errors.ts';

const REASONS: Record<string, [string, string]> = {
  ENOSPC: ['the disk is full', 'free some space; the run goes on where it was'],
  EDQUOT: ['the disk quota is used up', 'free some space; the run goes on where it was'],
  EROFS: ['the file system is read-only', 'name a writable folder with FARM_STORE or `store`'],
  EACCES: ['permission denied', 'give this user the right to write there, or name another folder with FARM_STORE'],
  EPERM: ['permission denied', 'give this user the right to write there, or name another folder with FARM_STORE'],
  ENOTDIR: ['a file stands where a folder should be', 'name another folder with FARM_STORE or `store`'],
};

export function unwritable(target: string, error: unknown): FarmError {
  if (error instanceof FarmError) return error;
  const [reason, hint] = REASONS[codeOf(error)] ?? [messageOf(error), 'look at the folder and its disk'];
  return missingError('store_unwritable', `the store cannot write ${target}: ${reason}`, hint, error);
}

export function unreadable(target: string, error: unknown): FarmError {
  if (error instanceof FarmError) return error;
  const reason = REASONS[codeOf(error)]?.[0] ?? messageOf(error);
  return missingError(
    'store_unreadable',
    `the store cannot read ${target}: ${reason}`,
    'look at the folder and its disk',
    error,
  );
}
