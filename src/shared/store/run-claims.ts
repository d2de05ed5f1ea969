// Every object that a run claims, by key: its inputs, its plan and all that hangs on it, and what its shards'
// indexes place. For removal and for collecting garbage, hence strict: where something cannot be read, it says so,
// because a claim that is not seen is an object wrongly deleted.

import { type Claim, objectKey, packKey } from '../claim.ts';
import { type PlanRef, placesIn } from '../plan/plan.ts';
import { walkPlan } from '../plan/walk.ts';
import { gunzipBounded } from './content.ts';
import { parseManifest } from './manifest.ts';
import { INDEX_MAX_BYTES, parseShardIndex } from './shard-index.ts';
import { manifestKey, runPrefix } from './shard-name.ts';
import type { Store } from './store.ts';

/** What a run rests on, for one whose manifest is not written yet. */
export interface RunRoots {
  plan: PlanRef;
  inputs: Claim[];
}

/** A key of an object, with how many others stand between it and the run's own files; or a reason why not all can be known. */
export type ClaimedKey = { key: string; depth: number } | { unknown: string };

/** Yields a key once or more often. `roots` stand in where there is no manifest. */
export async function* claimedKeys(store: Store, run: string, roots: RunRoots | null): AsyncGenerator<ClaimedKey> {
  const bytes = await store.get(manifestKey(run));
  const parsed = bytes === null ? null : parseManifest(bytes);
  if (parsed && 'fault' in parsed) yield { unknown: `${manifestKey(run)}: ${parsed.fault}` };
  const known = parsed && 'manifest' in parsed ? parsed.manifest : roots;
  if (known === null) yield { unknown: `${manifestKey(run)}: is not there, so the run's plan is not known` };
  else {
    for (const claim of known.inputs) yield { key: objectKey(claim.sha256), depth: 0 };
    yield* planKeys(store, known.plan);
  }
  for await (const { key } of store.list(runPrefix(run)))
    if (key.endsWith('.index.json.gz')) yield* indexKeys(store, key);
}

async function* planKeys(store: Store, plan: PlanRef): AsyncGenerator<ClaimedKey> {
  yield { key: objectKey(plan.index.sha256), depth: 0 };
  let groups = 0;
  for await (const step of walkPlan(store, plan)) {
    if (step.kind === 'fault') {
      yield { unknown: step.fault };
      continue;
    }
    groups++;
    yield { key: packKey(step.pack), depth: 1 };
    for (const claim of step.claims) yield { key: objectKey(claim.sha256), depth: 2 };
  }
  const all = placesIn(plan);
  if (groups !== all) yield { unknown: `plan index ${plan.index.key}: ${groups} of ${all} groups could be read` };
}

async function* indexKeys(store: Store, key: string): AsyncGenerator<ClaimedKey> {
  const bytes = await store.get(key);
  const plain = bytes === null ? { fault: 'is not there' } : await gunzipBounded(bytes, INDEX_MAX_BYTES);
  const parsed = 'fault' in plain ? plain : parseShardIndex(plain.content.toString());
  if ('fault' in parsed) {
    yield { unknown: `${key}: ${parsed.fault}` };
    return;
  }
  for (const pack of parsed.index.packs) yield { key: packKey(pack.sha256), depth: 0 };
  for (const placement of parsed.index.claims)
    if (!('pack' in placement)) yield { key: objectKey(placement.sha256), depth: 0 };
}

/** Others may write below `runs/` too: what has neither a manifest nor a shard is no run. */
const RUN_FILE = /^runs\/([A-Za-z0-9][A-Za-z0-9._-]{0,63})\/(?:manifest\.json$|shards\/.)/;

/** Every run that has anything in the store, in order. */
export async function runsInStore(store: Store): Promise<string[]> {
  const runs = new Set<string>();
  for await (const { key } of store.list('runs/')) {
    const run = RUN_FILE.exec(key)?.[1];
    if (run !== undefined) runs.add(run);
  }
  return [...runs];
}
