// One round of collecting: the ledger fixes a range of closed groups, their shard is built, put (packs, index,
// shard last), and committed. Whoever else does the same round writes the same bytes, so a kill at any point costs
// nothing but the work. Refuses to put a shard whose claims do not all lie in the store as they are claimed.

import pLimit from 'p-limit';
import { objectKey } from '../../shared/claim.ts';
import { EXIT, FarmError } from '../../shared/errors.ts';
import type { RunIdentity } from '../../shared/group.ts';
import { shardOfAnother } from '../../shared/store/another-farm.ts';
import { checkObject, putSound } from '../../shared/store/content.ts';
import { type BuiltShard, buildShard, type LedgerEntry } from '../../shared/store/shard.ts';
import { type ChainLink, genesis } from '../../shared/store/shard-name.ts';
import { type SoundShard, shardsThatFit } from '../../shared/store/shard-survey.ts';
import type { Store } from '../../shared/store/store.ts';

const READS_AT_ONCE = 8;

export interface ShardBounds {
  /** Most groups in a shard. */
  most: number;
  /** At least this many, unless `final`. */
  least: number;
  /** The run closes no more groups: take what there is, however little. */
  final: boolean;
}

export interface FixedShard {
  number: number;
  /** First and last seq. */
  from: number;
  to: number;
  /** Of the last committed shard; empty if none is. */
  link: ChainLink | '';
}

/** What the collector needs of one run's ledger. */
export interface CollectorLedger {
  /** Fixes the next shard's range, or gives the one that was fixed and is not committed. Null if there is nothing to do yet. */
  fixShard(bounds: ShardBounds): Promise<FixedShard | null>;
  /** The closed groups of that range, dense and in order. */
  entries(from: number, to: number): Promise<LedgerEntry[]>;
  /** By compare-and-set on the number. `superseded`: it was committed before, perhaps by the same bytes. */
  commit(shard: CollectedShard): Promise<'committed' | 'superseded'>;
}

interface CollectedShard {
  number: number;
  from: number;
  to: number;
  records: number;
  sha256: string;
  indexSha256: string;
  link: ChainLink;
  /** Groups that degenerate ones of it call for. */
  refills: number[];
}

export type Collected = { kind: 'idle' } | { kind: 'committed' | 'superseded'; shard: CollectedShard };

export async function collectShard(
  store: Store,
  ledger: CollectorLedger,
  identity: RunIdentity,
  bounds: ShardBounds,
): Promise<Collected> {
  const { run } = identity;
  const fixed = await ledger.fixShard(bounds);
  if (fixed === null) return { kind: 'idle' };
  const { number, from, to } = fixed;
  const entries = await ledger.entries(from, to);
  if (entries[0]?.seq !== from || entries.length !== to - from + 1)
    throw collectError(
      run,
      `shard ${number} is seq ${from} to ${to}, and the ledger gave ${entries.length} groups from ${entries[0]?.seq ?? 'none'}`,
    );
  const previous = fixed.link || genesis(run, identity.incarnation);
  const built = await buildShard(identity, number, previous, entries);
  const place = { incarnation: identity.incarnation, to: from - 1, link: previous };
  const there = await shardsThatFit(store, run, number, place);
  await refuseAnothers(store, identity, number);
  const other = there.some((s) => s.sha256 === built.sha256) ? undefined : there[0];
  if (other !== undefined) return adopt(ledger, run, built, other);
  await confirmObjects(store, run, built);
  // The ledger forgets these groups once the shard is committed: what the store has is all there is then.
  for (const pack of built.packs) await putSound(store, pack.key, pack.bytes);
  // All that took its time, and what is put from here on lies in the run's folder.
  await refuseAnothers(store, identity, number);
  for (const file of [built.index, built.shard]) await putSound(store, file.key, file.bytes);
  // Of two farms that began at once, and neither saw the other, whoever looks again after its put does.
  await refuseAnothers(store, identity, number);
  const { records, sha256, indexSha256, link, refills } = built;
  const shard: CollectedShard = { number, from, to, records, sha256, indexSha256, link, refills };
  return { kind: await ledger.commit(shard), shard };
}

/** Two farms on one store, with one run id: the run is theirs who put its first shard, also where the store knows no condition. */
async function refuseAnothers(store: Store, { run, incarnation }: RunIdentity, number: number): Promise<void> {
  const anothers = number > 0 ? null : await shardOfAnother(store, run, number, incarnation);
  if (anothers === null) return;
  throw new FarmError(
    'run_of_another',
    `run ${run}: another farm works on a run with this id in ${store.address} (${anothers})`,
    { exit: EXIT.unsound, hint: 'use another --run-id, or a prefix of its own for each farm' },
  );
}

/** What lies in the store wins: the same groups from another encoder are committed as they are; other groups mean that Redis has lost writes. */
async function adopt(ledger: CollectorLedger, run: string, built: BuiltShard, other: SoundShard): Promise<Collected> {
  const { number, from, to, records, sha256, indexSha256, link, refills } = other;
  if (to !== built.to || other.groups.join() !== built.groups.join())
    throw new FarmError(
      'ledger_behind_store',
      `run ${run}: the store has shard ${number} with seq ${from} to ${to}, and the ledger has other groups there`,
      { exit: EXIT.unsound, hint: 'Redis has lost writes: let the ledger take over the shards that the store has' },
    );
  const shard: CollectedShard = { number, from, to, records, sha256, indexSha256, link, refills };
  return { kind: await ledger.commit(shard), shard };
}

async function confirmObjects(store: Store, run: string, built: BuiltShard): Promise<void> {
  const read = pLimit(READS_AT_ONCE);
  const faults = await Promise.all(
    built.objects.map((claim) => read(() => checkObject(store, objectKey(claim.sha256), claim.sha256, claim.bytes))),
  );
  const fault = faults.find((f) => f !== null);
  if (fault !== undefined)
    throw collectError(run, `shard ${built.number} claims an object that is not sound: ${fault}`);
}

function collectError(run: string, what: string): FarmError {
  return new FarmError('collect_failed', `run ${run}: ${what}`, {
    exit: EXIT.unsound,
    hint: `the shard was not committed; put the object back, or remove the run with ./farm rm ${run}`,
  });
}
