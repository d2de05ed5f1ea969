// `farm store gc`: removes what no run claims and is older than a week, and uploads that were cut short. The ledger is
// asked which runs are unfinished: what those have put stays.

import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { storeAddressOf } from '../../shared/ledger/run-settings.ts';
import type { Redis } from '../../shared/redis/client.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import { collectGarbage, type UnfinishedRun } from '../../shared/store/garbage.ts';
import { mayBeOneStore, openStoreAddress } from '../../shared/store/open.ts';
import { rootsOf } from './rm.ts';

export async function storeGc(args: { store: string | null; dryRun: boolean; json: boolean }): Promise<number> {
  const config = readConfig();
  const store = await openStoreAddress(args.store ?? config.store);
  const { redis } = await connectRedis(config);
  try {
    const report = await collectGarbage(store, {
      unfinished: await unfinishedRuns(redis, store.address),
      dry: args.dryRun,
      onGarbage: ({ name, bytes, writtenAt }) => {
        if (args.dryRun && !args.json)
          process.stdout.write(`${name}  ${bytes} bytes  ${new Date(writtenAt).toISOString()}\n`);
      },
    });
    if (args.json) process.stdout.write(`${JSON.stringify({ ...report, dry_run: args.dryRun })}\n`);
    const { objects, bytes, unfinishedPuts, leftByOthers, young, claimed, foreign, refused } = report;
    process.stderr.write(
      refused === null
        ? `farm: ${args.dryRun ? 'would remove' : 'removed'} ${objects} objects (${bytes} bytes)${leftByOthers > 0 ? `, ${leftByOthers} files that another farm left in a finished run,` : ''} and ${unfinishedPuts} unfinished puts; ${claimed} are claimed, ${young} younger than a week or than an unfinished run${foreign > 0 ? `, ${foreign} not the farm’s` : ''}\n`
        : `farm: nothing was removed: ${refused}\n`,
    );
    return refused === null ? EXIT.ok : EXIT.unsound;
  } finally {
    await store.close();
    redis.disconnect();
  }
}

async function unfinishedRuns(redis: Redis, address: string): Promise<UnfinishedRun[]> {
  const unfinished: UnfinishedRun[] = [];
  for (const run of await knownRuns(redis, null)) {
    const { settings, manifest, opened_at: opened } = await new RunLedger(redis, run).fields();
    const roots = rootsOf(settings);
    if (settings === undefined || roots === null || manifest !== undefined) continue;
    if (!mayBeOneStore(storeAddressOf(settings) ?? address, address)) continue;
    unfinished.push({ run, roots, openedAt: opened === undefined ? null : Number(opened) });
  }
  return unfinished;
}
