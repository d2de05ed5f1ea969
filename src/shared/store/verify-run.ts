// Accounts for a finished run from the store alone: the manifest, that its folder holds exactly what it lists, the
// plan, every shard, every record, every claim; each (group, member) exactly once. Every fault is one line that
// names the file or the claim. What is broken, cut or gone never throws: it is what is looked for.

import { messageOf } from '../errors.ts';
import { placesIn } from '../plan/plan.ts';
import { leftByAnother } from './another-farm.ts';
import { type Manifest, parseManifest, promisedKeys } from './manifest.ts';
import { genesis, manifestKey, nextLink, runPrefix, shardKey } from './shard-name.ts';
import { type Counts, sumCounts } from './shard-record.ts';
import type { Store } from './store.ts';
import { Account, ranges } from './verify-account.ts';
import { memberRules } from './verify-member.ts';
import { verifyPlan } from './verify-plan.ts';
import { type Reading, verifyShard } from './verify-shard.ts';

export interface RunCheck {
  ok: boolean;
  /** One line each; a last line says how many were left out. */
  faults: string[];
  /** As counted from the records, not as promised. */
  groups: number;
  members: number;
  completed: number;
  noResult: number;
  seconds: number;
}

export async function verifyRun(store: Store, run: string): Promise<RunCheck> {
  const started = performance.now();
  const account = new Account(store);
  const counts = await verify(account, run);
  return {
    ok: account.faultCount === 0,
    faults: account.lines(),
    groups: counts.groups,
    members: counts.members,
    completed: counts.completed,
    noResult: counts.no_result,
    seconds: (performance.now() - started) / 1000,
  };
}

async function verify(account: Account, run: string): Promise<Counts> {
  const manifest = await readManifest(account, run);
  if (manifest === null) return sumCounts([]);
  await verifyListing(account, manifest);
  verifyRanges(account, manifest);
  const tasks = await verifyPlan(account, manifest.plan);
  await account.objects(manifest.inputs, 'inputs in the manifest');

  const planned = tasks ? placesIn(manifest.plan) : 0;
  const rules = memberRules(manifest.spec);
  const reading: Reading = { account, manifest, tasks, rules, seen: new Uint8Array(planned), called: new Set() };
  const all: Counts[] = [];
  let link = genesis(run, manifest.incarnation);
  for (const entry of manifest.shards) {
    try {
      const counts = await verifyShard(reading, entry, link);
      if (counts) all.push(counts);
    } catch (error) {
      account.fault(`${shardKey(run, entry.number, entry.sha256)}: ${messageOf(error)}`);
    }
    link = nextLink(link, entry.sha256, entry.index_sha256);
  }
  if (link !== manifest.link) account.fault(`${manifestKey(run)}: its link is not that of its shards`);
  const counts = sumCounts(all);
  verifyTotals(reading, counts);
  return counts;
}

async function readManifest(account: Account, run: string): Promise<Manifest | null> {
  const key = manifestKey(run);
  let bytes: Buffer | null;
  try {
    bytes = await account.store.get(key);
  } catch (error) {
    account.fault(`${key}: ${messageOf(error)}`);
    return null;
  }
  if (bytes === null) {
    account.fault('manifest.json is not there: the run is not finished');
    return null;
  }
  const parsed = parseManifest(bytes);
  if ('fault' in parsed) account.fault(`${key}: ${parsed.fault}`);
  else if (parsed.manifest.run === run) return parsed.manifest;
  else account.fault(`${key}: is the manifest of run ${parsed.manifest.run}`);
  return null;
}

/** The run's folder holds the manifest and what it lists, and nothing else. */
async function verifyListing(account: Account, manifest: Manifest): Promise<void> {
  const { run } = manifest;
  const known = promisedKeys(manifest);
  try {
    for await (const { key } of account.store.list(runPrefix(run)))
      if (!known.has(key)) account.fault(`${key}: is not part of the run (${await whyThere(account, manifest, key)})`);
    for await (const folder of account.store.emptyFolders?.(runPrefix(run)) ?? [])
      account.fault(`${folder}: is an empty folder, and not part of the run`);
  } catch (error) {
    account.fault(`${runPrefix(run)}: cannot be listed: ${messageOf(error)}`);
  }
}

async function whyThere(account: Account, manifest: Manifest, key: string): Promise<string> {
  const another = await leftByAnother(account.store, manifest, key).catch(() => null);
  return another === null
    ? 'extra, doubled or moved'
    : `extra: another farm, whose run of this id is ${another}, has left it; ./farm store gc removes it once it is a week old`;
}

function verifyRanges(account: Account, manifest: Manifest): void {
  const key = manifestKey(manifest.run);
  let next = 1;
  for (const [i, shard] of manifest.shards.entries()) {
    if (shard.number !== i) account.fault(`${key}: shard ${shard.number} stands where ${i} should`);
    if (shard.from_seq !== next || shard.to_seq - shard.from_seq + 1 !== shard.records)
      account.fault(
        `${key}: shard ${shard.number} has seq ${shard.from_seq} to ${shard.to_seq} and ${shard.records} records, and ${next} is next`,
      );
    next = shard.to_seq + 1;
  }
}

function verifyTotals(reading: Reading, counts: Counts): void {
  const { account, manifest, seen, tasks, called } = reading;
  const key = manifestKey(manifest.run);
  if (tasks) {
    const absent: number[] = [];
    const uncalled: number[] = [];
    for (const [group, flag] of seen.entries()) {
      const wanted = group < manifest.plan.groups || called.has(group);
      if (wanted && !flag) absent.push(group);
      if (!wanted && flag) uncalled.push(group);
    }
    if (absent.length > 0)
      account.fault(`run ${manifest.run}: ${absent.length} planned groups have no record: ${ranges(absent)}`);
    if (uncalled.length > 0)
      account.fault(
        `run ${manifest.run}: ${uncalled.length} further groups have a record, and refill none that is degenerate: ${ranges(uncalled)}`,
      );
  }
  const promised = manifest.counts;
  for (const name of ['groups', 'members', 'completed', 'no_result'] as const)
    if (promised[name] !== counts[name])
      account.fault(`${key}: promises ${promised[name]} ${name}, the records have ${counts[name]}`);
  if (JSON.stringify(sumCounts([promised]).by_cause) !== JSON.stringify(counts.by_cause))
    account.fault(`${key}: its counts by cause are not those of the records`);
}
