// `farm rm RUN`: deletes a run's records and what only it claims, in the store and in Redis.

import { readConfig } from '../../shared/config.ts';
import { EXIT, inputError } from '../../shared/errors.ts';
import { forgetRun, knownRuns } from '../../shared/ledger/known-runs.ts';
import { isOtherVersion } from '../../shared/ledger/ledger-version.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { type RunSettings, readSettings } from '../../shared/ledger/run-settings.ts';
import { isKnownAlive, isKnownDead, processIdentity } from '../../shared/process-identity.ts';
import type { Redis } from '../../shared/redis/client.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import type { RunRoots } from '../../shared/store/run-claims.ts';
import { removeRun } from '../../shared/store/run-removal.ts';
import type { Store } from '../../shared/store/store.ts';
import { locate } from './verify-run.ts';

/** A lease is good for ten seconds, and a large run takes longer to remove. */
const HOLD_MS = 2_000;

export async function rm(args: { run: string }): Promise<number> {
  const { store, run } = await locate(args.run);
  const { redis } = await connectRedis(readConfig());
  try {
    const ledger = new RunLedger(redis, run);
    const fields = await ledger.fields();
    // Taken, and not only looked at: while its records go nobody else begins to drive it.
    if (fields.state !== undefined && !(await held(ledger, fields.driver ?? '')))
      throw inputError('run_at_work', `run ${run} is at work`, `./farm cancel ${run} first`);
    const holding = setInterval(() => void held(ledger, '').catch(() => {}), HOLD_MS);
    try {
      await remove(redis, store, run, fields.settings);
    } finally {
      clearInterval(holding);
      await ledger.undrive(processIdentity()).catch(() => {});
    }
    return EXIT.ok;
  } finally {
    await store.close();
    redis.disconnect();
  }
}

/** Whether the run's lease is ours: whether another one's still holds is for the ledger to say, by its own clock. */
async function held(ledger: RunLedger, driver: string): Promise<boolean> {
  try {
    return 'epoch' in (await ledger.drive(processIdentity(), isKnownDead(driver) ? driver : ''));
  } catch (error) {
    // Another version's ledger has no lease that we can read: whether its driver lives is known on this machine alone.
    if (isOtherVersion(error)) return !isKnownAlive(driver);
    throw error;
  }
}

async function remove(redis: Redis, store: Store, run: string, settings: string | undefined): Promise<void> {
  const others = (await knownRuns(redis, null)).filter((other) => other !== run);
  const unfinished = await Promise.all(
    others.map(async (other) => (await new RunLedger(redis, other).field('manifest')) === null),
  );
  const removal = await removeRun(store, run, {
    othersUnfinished: unfinished.includes(true),
    roots: rootsOf(settings),
  });
  await forgetRun(redis, run);
  process.stderr.write(
    `farm: removed ${run}: ${removal.files} files, ${removal.objects} objects${removal.kept === null ? '' : `; objects stay: ${removal.kept}`}\n`,
  );
}

/** What an unfinished run claims beside its shards. */
export function rootsOf(text: string | undefined): RunRoots | null {
  if (text === undefined) return null;
  let settings: RunSettings;
  try {
    settings = readSettings(text);
  } catch {
    // Another version's: what only it claims is left to gc.
    return null;
  }
  const { plan, documentSha256 } = settings;
  return { plan, inputs: [{ key: `sha256/${documentSha256}`, sha256: documentSha256, bytes: 0 }] };
}
