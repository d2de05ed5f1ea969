// Deletes a run from the store: its folder, and of what it claims only that which no other run claims. While
// another run is unfinished, or another run's claims cannot all be read, its objects stay: that run may rest on
// them without a word in the store yet, and `store gc` takes what is left. A removal that was cut short is repeated: what others are
// found by goes after them.

import pLimit from 'p-limit';
import { type ClaimedKey, claimedKeys, type RunRoots, runsInStore } from './run-claims.ts';
import { manifestKey, runPrefix } from './shard-name.ts';
import type { Store } from './store.ts';

const DELETES_AT_ONCE = 16;

export interface Removal {
  /** Files of the run's own folder that were deleted. */
  files: number;
  /** Objects and packs that were deleted with it. */
  objects: number;
  /** Objects that another run claims too. */
  shared: number;
  /** Why objects were left for `store gc`, or null. */
  kept: string | null;
}

export interface RemovalOptions {
  /** From the ledger, for a run without a manifest. */
  roots?: RunRoots | null;
  /** The ledger knows another run that is not finished. */
  othersUnfinished: boolean;
}

export async function removeRun(store: Store, run: string, options: RemovalOptions): Promise<Removal> {
  const mine = new Map<string, number>();
  // What cannot be read of this run is left for gc; what can be is removed.
  for await (const claimed of claimedKeys(store, run, options.roots ?? null))
    if ('key' in claimed) mine.set(claimed.key, Math.min(claimed.depth, mine.get(claimed.key) ?? claimed.depth));
  const before = mine.size;
  let kept = options.othersUnfinished ? 'another run is unfinished' : null;
  if (kept === null) kept = await withoutOthers(store, run, mine);

  const objects = kept === null ? [...mine] : [];
  const deleting = pLimit(DELETES_AT_ONCE);
  for (const depth of [...new Set(mine.values())].sort((a, b) => b - a)) {
    const deepest = objects.filter(([, at]) => at === depth);
    await Promise.all(deepest.map(([key]) => deleting(() => store.delete(key))));
  }
  let files = 0;
  for (const key of await filesOf(store, run)) {
    await store.delete(key);
    files++;
  }
  return { files, objects: objects.length, shared: kept === null ? before - mine.size : 0, kept };
}

/** Takes from `mine` what other runs claim. Says why if not all of their claims can be known. */
async function withoutOthers(store: Store, run: string, mine: Map<string, number>): Promise<string | null> {
  for (const other of await runsInStore(store)) {
    if (other === run) continue;
    for await (const claimed of claimedKeys(store, other, null)) {
      if ('unknown' in claimed) return unknownOf(other, claimed);
      mine.delete(claimed.key);
    }
  }
  return null;
}

function unknownOf(run: string, claimed: Extract<ClaimedKey, { unknown: string }>): string {
  return `the claims of run ${run} are not all known (${claimed.unknown})`;
}

/** The manifest last: by it a removal that was cut short finds the rest. */
async function filesOf(store: Store, run: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(runPrefix(run))) keys.push(key);
  const last = manifestKey(run);
  return [...keys.filter((key) => key !== last), ...keys.filter((key) => key === last)];
}
