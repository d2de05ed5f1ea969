// One shard's part of verify-run: stored bytes, index, range, and each record in it. A record is sound if it is the
// next seq, a planned group not seen before with its planned task, all its members in order, and exactly the text
// that its own facts render to; its members' accounts hold (verify-member.ts), and so do the contents that they claim.

import { type ClosedGroup, parseCursor, type RunIdentity, refillOf } from '../group.ts';
import { placesIn } from '../plan/plan.ts';
import { gunzipBounded, sha256Away } from './content.ts';
import type { Manifest, ShardEntry } from './manifest.ts';
import type { PlannedTasks } from './planned-tasks.ts';
import { INDEX_MAX_BYTES, parseShardIndex, type ShardIndex } from './shard-index.ts';
import { shardIndexKey, shardKey } from './shard-name.ts';
import { type Counts, claimsOf, countGroup, noCounts, readLine, renderLine, sumCounts } from './shard-record.ts';
import type { Account } from './verify-account.ts';
import { ClaimTally, verifyPlacements } from './verify-claims.ts';
import { ClaimedContents } from './verify-content.ts';
import { type MemberRules, memberFaults } from './verify-member.ts';

export interface Reading {
  account: Account;
  manifest: Manifest;
  tasks: PlannedTasks | null;
  rules: MemberRules;
  /** One byte a group: seen or not. */
  seen: Uint8Array;
  /** Groups that refill degenerate ones. */
  called: Set<number>;
}

/** Null if its records could not be read. */
export async function verifyShard(reading: Reading, entry: ShardEntry, previous: string): Promise<Counts | null> {
  const { account, manifest } = reading;
  const key = shardKey(manifest.run, entry.number, entry.sha256);
  const indexKey = shardIndexKey(manifest.run, entry.number, entry.sha256);
  const bytes = await promised(account, key, entry.bytes, entry.sha256);
  const indexBytes = await promised(account, indexKey, entry.index_bytes, entry.index_sha256);
  if (bytes === null || indexBytes === null) return null;
  const index = await readIndex(account, indexKey, indexBytes);
  if (index === null) return null;
  const own: [string, unknown, unknown][] = [
    ['run', index.run, manifest.run],
    ['incarnation', index.incarnation, manifest.incarnation],
    ['number', index.number, entry.number],
    ['from_seq', index.from_seq, entry.from_seq],
    ['to_seq', index.to_seq, entry.to_seq],
    ['records', index.records, entry.records],
    ['previous', index.previous, previous],
    ['shard.sha256', index.shard.sha256, entry.sha256],
    ['shard.bytes', index.shard.bytes, entry.bytes],
  ];
  for (const [name, found, wanted] of own)
    if (found !== wanted) account.fault(`${indexKey}: ${name} is ${found}, the manifest says ${wanted}`);

  const plain = await gunzipBounded(bytes, index.shard.raw_bytes);
  if ('fault' in plain) {
    account.fault(`${key}: ${plain.fault}`);
    return null;
  }
  if (plain.content.byteLength !== index.shard.raw_bytes)
    account.fault(`${key}: inflates to ${plain.content.byteLength} bytes where ${index.shard.raw_bytes} are promised`);
  const contents = new ClaimedContents(account, reading.tasks);
  const counts = verifyRecords(reading, contents, key, indexKey, entry, index, plain.content.toString());
  await verifyPlacements(account, indexKey, index, (digest, content) => contents.inspect(digest, content));
  return counts;
}

async function promised(account: Account, key: string, size: number, digest: string): Promise<Buffer | null> {
  const bytes = await account.get(key);
  if (bytes === null) return null;
  const found = await sha256Away(bytes);
  if (bytes.byteLength === size && found === digest) return bytes;
  account.fault(
    bytes.byteLength === size
      ? `${key}: has the hash ${found}, the manifest says ${digest}`
      : `${key}: has ${bytes.byteLength} bytes, the manifest says ${size}`,
  );
  return null;
}

async function readIndex(account: Account, indexKey: string, bytes: Buffer): Promise<ShardIndex | null> {
  const plain = await gunzipBounded(bytes, INDEX_MAX_BYTES);
  const parsed = 'fault' in plain ? plain : parseShardIndex(plain.content.toString());
  if ('index' in parsed) return parsed.index;
  account.fault(`${indexKey}: ${parsed.fault}`);
  return null;
}

function verifyRecords(
  reading: Reading,
  contents: ClaimedContents,
  key: string,
  indexKey: string,
  entry: ShardEntry,
  index: ShardIndex,
  text: string,
): Counts {
  const { account, manifest } = reading;
  const { run, incarnation, convention } = manifest;
  const identity: RunIdentity = { run, incarnation, convention };
  const counts = noCounts();
  const tally = new ClaimTally(account, indexKey, index);
  const refills: number[] = [];
  const lines = text.split('\n');
  if (lines.pop() !== '') account.fault(`${key}: its last line does not end`);
  if (lines.length !== entry.records)
    account.fault(`${key}: has ${lines.length} records where ${entry.records} are promised`);
  for (const [i, line] of lines.entries()) {
    const seq = entry.from_seq + i;
    const where = `${key}, record ${i + 1}`;
    const read = readLine(line, seq);
    if ('fault' in read) {
      account.fault(`${where}: ${read.fault}`);
      continue;
    }
    const { closed, cursor } = read;
    countGroup(counts, closed);
    const at = parseCursor(manifest.incarnation, cursor);
    if (at?.seq !== seq) account.fault(`${where}: its cursor is ${cursor}, and seq ${seq} is next`);
    if (renderLine({ ...identity, unmarked: at?.mark === null }, closed) !== line)
      account.fault(`${where}: its figures or its form are not what its members give`);
    if (index.groups[i] !== closed.group) account.fault(`${indexKey}: its list of groups differs at record ${i + 1}`);
    verifyGroup(reading, where, closed.group, closed.task_id, closed.members.length);
    const refill = verifyRefill(reading, where, closed);
    if (refill !== null) refills.push(refill);
    const verified = reading.tasks?.verified(closed.group) ?? null;
    for (const [m, member] of closed.members.entries()) {
      const whose = `${where}, group ${closed.group}, member ${member.member}`;
      if (member.member !== m) account.fault(`${whose}: stands at place ${m}`);
      for (const fault of memberFaults(member, verified, reading.rules)) account.fault(`${whose}: ${fault}`);
      if (member.status !== 'completed') continue;
      for (const claim of claimsOf(member)) tally.claim(claim, whose);
      contents.expect(closed.group, member, whose);
    }
  }
  if (index.groups.length !== lines.length)
    account.fault(`${indexKey}: lists ${index.groups.length} groups for ${lines.length} records`);
  if (refills.join() !== (index.refills ?? []).join())
    account.fault(`${indexKey}: its list of groups that refill others is not that of its records`);
  if (JSON.stringify(sumCounts([counts])) !== JSON.stringify(sumCounts([index.counts])))
    account.fault(`${indexKey}: its counts are not those of its records`);
  tally.end();
  return counts;
}

function verifyGroup(reading: Reading, where: string, group: number, taskId: string, size: number): void {
  const { account, manifest, seen, tasks } = reading;
  if (group >= placesIn(manifest.plan)) {
    account.fault(`${where}: group ${group} was never planned`);
    return;
  }
  if (seen[group]) account.fault(`${where}: group ${group} is recorded a second time`);
  seen[group] = 1;
  if (tasks && !tasks.fits(group, taskId))
    account.fault(`${where}: group ${group} has the task ${JSON.stringify(taskId)}, another was planned`);
  if (size !== manifest.plan.groupSize)
    account.fault(`${where}: group ${group} has ${size} members where ${manifest.plan.groupSize} were planned`);
}

/** A degenerate group whose task has more to give is refilled, no other is, and each by the group that the plan has for it. */
function verifyRefill({ account, tasks, called }: Reading, where: string, closed: ClosedGroup): number | null {
  const said = refillOf(closed);
  if (said !== null) called.add(said);
  if (tasks === null || tasks.verified(closed.group) === null) return said;
  const spare = tasks.spare(closed.group);
  const { spare: _, ...bare } = closed;
  const due = spare === null ? null : refillOf({ ...bare, spare });
  if (said !== due)
    account.fault(
      `${where}: group ${closed.group} is refilled by ${said ?? 'none'}, and what it holds and its plan call for ${due ?? 'none'}`,
    );
  return said;
}
