// `farm runs`: what Redis knows, and what only the store knows any more.

import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { readStatus, unreadable } from '../../shared/ledger/run-status.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { openStoreAddress } from '../../shared/store/open.ts';
import { runsInStore } from '../../shared/store/run-claims.ts';
import { finishedStatus } from '../stored-run.ts';
import { line } from './status.ts';

export async function runs(args: { json: boolean }): Promise<number> {
  const config = readConfig();
  const { redis } = await connectRedis(config);
  const store = await openStoreAddress(config.store);
  try {
    const names = new Set([...(await knownRuns(redis, null)), ...(await runsInStore(store))]);
    const rows = [];
    for (const run of [...names].sort())
      rows.push((await readStatus(redis, run).catch(unreadable(run))) ?? (await finishedStatus(config, run)));
    const found = rows.filter((row) => row !== null);
    if (args.json) process.stdout.write(`${JSON.stringify(found)}\n`);
    else for (const row of found) process.stdout.write(`${line(row)}\n`);
    return EXIT.ok;
  } finally {
    await store.close();
    redis.disconnect();
  }
}
