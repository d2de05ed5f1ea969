// Ends a run in the store: when its shards hold every planned group, the manifest is written, and only then are
// strays deleted (what a superseded collector left). Repeating it writes the same manifest. Refuses a run whose
// shards in the store are not all there: a manifest is a promise.

import type { Claim } from '../../shared/claim.ts';
import { EXIT, FarmError, missingError } from '../../shared/errors.ts';
import type { RunIdentity } from '../../shared/group.ts';
import type { ValueMap } from '../../shared/json/value.ts';
import type { PlanRef } from '../../shared/plan/plan.ts';
import { buildManifest, type Manifest, parseManifest, shardEntry } from '../../shared/store/manifest.ts';
import { type ChainLink, genesis, manifestKey } from '../../shared/store/shard-name.ts';
import { type Counts, sumCounts } from '../../shared/store/shard-record.ts';
import { surveyShards } from '../../shared/store/shard-survey.ts';
import type { Store } from '../../shared/store/store.ts';

export interface FinishedRun {
  identity: RunIdentity;
  state: Manifest['state'];
  spec: ValueMap;
  plan: PlanRef;
  inputs: Claim[];
  /** Of the last committed shard in the ledger; null if the ledger does not know (the store then decides alone). */
  link: ChainLink | null;
}

/** Returns the counts of the whole run, as its shards have them. */
export async function finishRun(store: Store, finished: FinishedRun): Promise<Counts> {
  const { identity, state, spec, plan, inputs } = finished;
  const { run, incarnation, convention } = identity;
  await refuseAnothers(store, identity);
  const survey = await surveyShards(store, run, { link: finished.link });
  const link = survey.shards.at(-1)?.link ?? genesis(run, incarnation);
  const counts = sumCounts(survey.shards.map((s) => s.counts));
  if (survey.incarnation !== null && survey.incarnation !== incarnation)
    throw unfinished(run, `its shards are of the incarnation ${survey.incarnation}, the run is ${incarnation}`);
  if (finished.link !== null && finished.link !== link)
    throw unfinished(run, `its sound shards end at number ${survey.shards.length - 1}, and not where the ledger's do`);
  const groups = plan.groups + survey.shards.reduce((n, s) => n + s.refills.length, 0);
  if (counts.groups !== groups) throw unfinished(run, `its sound shards hold ${counts.groups} of ${groups} groups`);
  const shards = survey.shards.map(shardEntry);
  const manifest = buildManifest({ run, incarnation, state, convention, counts, plan, inputs, spec, shards, link });
  await seal(store, finished.identity, manifest, link);
  for (const key of survey.strays) await store.delete(key);
  return counts;
}

/** Never over another one: a manifest is a promise that somebody has given, perhaps another farm on the same store. */
async function seal(store: Store, { run, incarnation }: RunIdentity, manifest: Buffer, link: ChainLink): Promise<void> {
  const key = manifestKey(run);
  await store.putNew(key, manifest);
  const there = await store.get(key);
  if (there?.equals(manifest)) return;
  if (there === null)
    throw missingError(
      'store_lies',
      `the store ${store.address} took ${key} and does not have it`,
      'look at the store, and at what lies before it',
    );
  const parsed = parseManifest(there);
  // The same promise, given before this Redis lost the word of how the run ended.
  if ('manifest' in parsed && parsed.manifest.incarnation === incarnation && parsed.manifest.link === link) return;
  throw conflict(store, run, 'fault' in parsed ? `it ${parsed.fault}` : 'it lists other shards');
}

/** Two farms on one store, with one id: only one of them can have the run. */
async function refuseAnothers(store: Store, { run, incarnation }: RunIdentity): Promise<void> {
  const there = await store.get(manifestKey(run));
  const parsed = there === null ? null : parseManifest(there);
  if (parsed !== null && 'manifest' in parsed && parsed.manifest.incarnation !== incarnation)
    throw conflict(store, run, 'another farm has finished a run with this id there');
}

function conflict(store: Store, run: string, what: string): FarmError {
  return new FarmError('manifest_conflict', `run ${run}: another manifest stands in ${store.address}: ${what}`, {
    exit: EXIT.unsound,
    hint: 'use another --run-id, or a prefix of its own for each farm; verify-run says what stands there',
  });
}

function unfinished(run: string, what: string): FarmError {
  return new FarmError('shards_incomplete', `run ${run}: no manifest was written: ${what}`, {
    exit: EXIT.unsound,
    hint: 'a shard in the store is gone or was changed; verify-run and the store’s backups know more',
  });
}
