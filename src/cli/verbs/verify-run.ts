// `farm verify-run RUN|DIR|s3://…`: reads the store alone and accounts for every member, every claim and every hash.

import path from 'node:path';
import { readConfig } from '../../shared/config.ts';
import { EXIT, FarmError, inputError } from '../../shared/errors.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { storeAddressOf } from '../../shared/ledger/run-settings.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { openStoreAddress, RUN_ID, splitRunAddress } from '../../shared/store/open.ts';
import { isS3Address } from '../../shared/store/s3-address.ts';
import { runPrefix } from '../../shared/store/shard-name.ts';
import type { Store } from '../../shared/store/store.ts';
import { verifyRun } from '../../shared/store/verify-run.ts';
import { unknownRun } from '../stored-run.ts';

const SHOWN = 50;

export async function verifyRunVerb(args: { run: string; json: boolean }): Promise<number> {
  const { store, run } = await locate(args.run);
  try {
    const check = await verifyRun(store, run);
    if (args.json) process.stdout.write(`${JSON.stringify({ run, ...check })}\n`);
    else if (check.ok) {
      process.stdout.write(
        `${run}: sound: ${check.groups} groups, ${check.members} members (${check.completed} completed, ${check.noResult} without result), every hash right\n`,
      );
    } else {
      for (const fault of check.faults.slice(0, SHOWN)) process.stdout.write(`${run}: ${fault}\n`);
      if (check.faults.length > SHOWN) process.stdout.write(`… and ${check.faults.length - SHOWN} more\n`);
    }
    return check.ok ? EXIT.ok : EXIT.unsound;
  } finally {
    await store.close();
  }
}

/** A folder or address, or the id of a run that the ledger or the default store knows. */
export async function locate(target: string): Promise<{ store: Store; run: string }> {
  if (target.includes('/') || target.includes(path.sep) || !RUN_ID.test(target)) {
    const { root, run } = splitRunAddress(target);
    const store = await openStoreAddress(root);
    // A folder was looked at; an address is found out by asking.
    if (isS3Address(root) && !(await hasRun(store, run).catch(noBucket))) throw unknownAddress(target);
    return { store, run };
  }
  const config = readConfig();
  const { redis } = await connectRedis(config);
  try {
    const text = await new RunLedger(redis, target).field('settings');
    const store = await openStoreAddress(storeAddressOf(text) ?? config.store);
    if (text === null && !(await hasRun(store, target))) throw unknownRun(target);
    return { store, run: target };
  } finally {
    redis.disconnect();
  }
}

async function hasRun(store: Store, run: string): Promise<boolean> {
  for await (const _ of store.list(runPrefix(run))) return true;
  return false;
}

/** An address in a bucket that is not there is no address of a run: exit 2. */
function noBucket(error: unknown): never {
  if (error instanceof FarmError && error.code === 'store_no_bucket')
    throw inputError(error.code, error.message, error.hint);
  throw error;
}

function unknownAddress(target: string): FarmError {
  return inputError('unknown_run', `there is no run at ${target}`, 'an address ends in /runs/RUN');
}
