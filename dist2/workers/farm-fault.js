// Whose fault a failure is: a part of the farm (store, engine, Redis) that is away pauses the run and costs nobody an
// attempt; anything else is charged, so that a bug cannot keep a run busy for ever.
import { EXIT, FarmError } from '../shared/errors.js';
const REDIS_GONE = /connection is (closed|lost)|connection was lost|max ?retries|OOM command not allowed|LOADING|READONLY|MASTERDOWN/i;
const DISK = new Set([
    'ENOSPC',
    'EROFS',
    'EACCES',
    'EIO',
    'EDQUOT',
    'EMFILE',
    'ENFILE',
    'ECONNREFUSED',
    'ECONNRESET',
    'EPIPE',
    'ETIMEDOUT',
]);
export function isFarmFault(error) {
    if (error instanceof FarmError)
        return error.exit === EXIT.missing;
    if (!(error instanceof Error))
        return false;
    return REDIS_GONE.test(error.message) || DISK.has(error.code ?? '');
}
