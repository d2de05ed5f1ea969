// A run as the store knows it, for commands that are asked about one that Redis has forgotten.

import type { Config } from '../shared/config.ts';
import { type FarmError, inputError } from '../shared/errors.ts';
import type { RunStatus } from '../shared/ledger/run-status.ts';
import { type Manifest, parseManifest } from '../shared/store/manifest.ts';
import { openStoreAddress, RUN_ID } from '../shared/store/open.ts';
import { manifestKey } from '../shared/store/shard-name.ts';
import type { Store } from '../shared/store/store.ts';

export function unknownRun(run: string): FarmError {
  return inputError(
    'unknown_run',
    `there is no run ${JSON.stringify(run)} here`,
    './farm runs lists those that are known',
  );
}

/** Null if the run is not finished, or not there. Throws FarmError (exit 2) where the manifest is broken. */
export async function readManifest(store: Store, run: string): Promise<Manifest | null> {
  const bytes = await store.get(manifestKey(run));
  if (bytes === null) return null;
  const parsed = parseManifest(bytes);
  if ('manifest' in parsed) return parsed.manifest;
  throw inputError('manifest_broken', `the manifest of ${run} ${parsed.fault}`, `./farm verify-run ${run} says more`);
}

/** The status of a run that has a manifest in the default store, or null. */
export async function finishedStatus(config: Config, run: string): Promise<RunStatus | null> {
  if (!RUN_ID.test(run)) return null;
  const store = await openStoreAddress(config.store);
  try {
    const manifest = await readManifest(store, run);
    if (manifest === null) return null;
    const { counts, state } = manifest;
    return {
      run,
      state,
      groups: { planned: counts.groups, closed: counts.groups },
      members: {
        planned: counts.members,
        accepted: counts.members,
        completed: counts.completed,
        no_result: counts.no_result,
        in_flight: 0,
        by_cause: counts.by_cause as Record<string, number>,
      },
      waiting_for: [],
      rate_per_s: null,
      eta_s: null,
    };
  } finally {
    await store.close();
  }
}
