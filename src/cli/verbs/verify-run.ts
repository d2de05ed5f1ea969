// `farm verify-run RUN|DIR`: reads the store alone and accounts for every member, every claim and every hash.

import path from 'node:path';
import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { storeAddressOf } from '../../shared/ledger/run-settings.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { openStoreAddress, RUN_ID, splitRunAddress } from '../../shared/store/open.ts';
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
    return { store: await openStoreAddress(root), run };
  }
  const config = readConfig();
  const { redis } = await connectRedis(config);
  try {
    const text = await new RunLedger(redis, target).field('settings');
    const store = await openStoreAddress(storeAddressOf(text) ?? config.store);
    if (text === null) {
      let there = false;
      for await (const _ of store.list(runPrefix(target))) {
        there = true;
        break;
      }
      if (!there) throw unknownRun(target);
    }
    return { store, run: target };
  } finally {
    redis.disconnect();
  }
}
