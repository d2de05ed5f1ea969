// A whole synthetic run for the tests of the store: a plan with claims in its documents, members of every kind
// (small and large trajectories, reports of a verifier, no result), and a ledger that holds the entries and forgets nothing.

import { claimOf, objectKey, packKey, sha256 } from '../../src/shared/claim.ts';
import type { ClosedGroup, RunIdentity } from '../../src/shared/group.ts';
import { dumpJson, toValue } from '../../src/shared/json/json.ts';
import { mapOf } from '../../src/shared/json/value.ts';
import type { Member } from '../../src/shared/outcome.ts';
import { encodeDocument, encodeEntry, type PlanRef, type Play } from '../../src/shared/plan/plan.ts';
import { putContent } from '../../src/shared/store/content.ts';
import type { LedgerEntry } from '../../src/shared/store/shard.ts';
import type { Store } from '../../src/shared/store/store.ts';
import {
  type CollectorLedger,
  collectShard,
  type FixedShard,
  type ShardBounds,
} from '../../src/workers/collect/collector.ts';
import { type FinishedRun, finishRun } from '../../src/workers/collect/finish.ts';
import { savedEpisode } from './saved-episode.ts';

/** As the spec's document has it. */
const VERIFIER = { weights: { format: 0.1, certified: 0.5, rejected_penalty: 0.25 }, clip: [-1, 0.5], floor: -1 };
/** 0.1 + 0.5 − 0.25 × 0.5, and bounded by the clip above it. */
const SHAPED = 0.1 + 0.5 - 0.25 * 0.5;
const PARTS = {
  format: 1,
  certified: 1,
  correctness: 1,
  graded: 0,
  rejected_penalty: 0.5,
  unsupported_penalty: 0,
  consistency: 0,
};

export interface RunFixture {
  identity: RunIdentity;
  entries: LedgerEntry[];
  finished: FinishedRun;
}

/** `salt` tells the contents of two runs apart; equal salts share every object. `refilled`: the last group refills the first, which is degenerate. */
export async function makeRun(
  store: Store,
  run: string,
  { groups = 7, size = 3, salt = run, large = true, refilled = false } = {},
): Promise<RunFixture> {
  const identity: RunIdentity = { run, incarnation: sha256(run).slice(0, 16), convention: 'trl' };
  const entries: LedgerEntry[] = [];
  for (let i = 0; i < groups; i++) entries.push(await makeEntry(store, i, groups, size, salt, large, refilled));
  const plan = await makePlan(store, groups, size, salt, refilled);
  const verifier = toValue(VERIFIER);
  const spec = mapOf({ name: run, seed: 7n, max_steps: 5n, weight: 1.0, salt, verifier });
  const specText = Buffer.from(dumpJson(spec));
  await store.put(objectKey(sha256(specText)), specText);
  return {
    identity,
    entries,
    finished: { identity, state: 'done', spec, plan, inputs: [claimOf(specText)], link: null },
  };
}

async function makeEntry(
  store: Store,
  i: number,
  groups: number,
  size: number,
  salt: string,
  large: boolean,
  refilled: boolean,
): Promise<LedgerEntry> {
  // Groups close in another order than they were planned in.
  const group = groups - 1 - i;
  const blobs: { sha256: string; bytes: Buffer }[] = [];
  const keep = async (content: Buffer) => {
    const { claim, inline } = await putContent(store, content);
    if (inline) blobs.push({ sha256: claim.sha256, bytes: inline });
    return claim;
  };
  const members: Member[] = [];
  for (let member = 0; member < size; member++) {
    if (size > 2 && member === size - 1 && group % 3 === 1) {
      members.push({ member, status: 'no_result', cause: 'sandbox_lost', detail: 'its box is gone', attempts: 3 });
      continue;
    }
    const big = large && group % 4 === 0 && member === 0;
    const env = member === 0 || (refilled && group === 0) ? 1 : -0.1 * member;
    const trajectory = await keep(episode(group, member, env, `${salt}${group}-${member}`, big ? 9000 : 40));
    const report = isVerified(group)
      ? await keep(Buffer.from(`{"proof_checked": true, "salt": "${salt}", "n": ${member % 2}}`))
      : undefined;
    const reward = report ? env + SHAPED : env;
    members.push({
      member,
      status: 'completed',
      reward,
      components: { env, ...(report ? PARTS : {}) },
      attempts: 1,
      steps: 2,
      seconds: 0.25,
      diagnostics: [],
      trajectory,
      ...(report ? { report } : {}),
      certificate: {
        trajectory_sha256: trajectory.sha256,
        env: 'guess',
        image: null,
        runner: null,
        isolation: 'none',
        grade: 'outside',
        reward,
        report_sha256: report?.sha256 ?? null,
      },
    });
  }
  const spare = refilled && group === 0 ? { spare: groups - 1 } : {};
  const closed: ClosedGroup = { seq: i + 1, group, task_id: `task/${group}`, closed_by: 'all', members, ...spare };
  return { seq: i + 1, closed, blobs };
}

function isVerified(group: number): boolean {
  return group % 2 === 1;
}

/** Two steps; each group has a seed of its own. */
function episode(group: number, member: number, total: number, noiseSeed: string, noiseBytes: number): Buffer {
  let noise = '';
  for (let n = 0; noise.length < noiseBytes; n++) noise += sha256(`${noiseSeed}/${n}`);
  const config = mapOf({ low: 1n, high: 100n, max_guesses: 10n });
  return savedEpisode({
    seed: BigInt(group),
    config,
    total,
    steps: 2,
    action: BigInt(member),
    noise: noise.slice(0, noiseBytes),
  });
}

async function makePlan(store: Store, groups: number, size: number, salt: string, refilled: boolean): Promise<PlanRef> {
  const config = Buffer.from(`{"low": 1, "salt": "${salt}"}`);
  const text = Buffer.from(JSON.stringify(`a completion of ${salt}`));
  for (const content of [config, text]) await store.put(objectKey(sha256(content)), content);
  const places: string[] = [];
  for (let first = 0; first < groups; first += 4) {
    const documents: Buffer[] = [];
    for (let group = first; group < Math.min(groups, first + 4); group++) {
      const completion: Play = {
        kind: 'completion',
        completion: group === 1 ? { claim: claimOf(text) } : { inline: 'x' },
      };
      // Groups that no verifier grades have actions, one a member.
      const playOf = (member: number): Play =>
        isVerified(group) ? completion : { kind: 'actions', actions: { inline: [BigInt(member)] } };
      documents.push(
        encodeDocument({
          task_id: `task/${group}`,
          env: 'guess',
          seed: BigInt(group),
          config: { claim: claimOf(config) },
          prompt: { inline: salt },
          metadata: null,
          verify: isVerified(group),
          plays: Array.from({ length: size }, (_, member) => playOf(member)),
        }),
      );
    }
    const pack = Buffer.concat(documents);
    await store.put(packKey(sha256(pack)), pack);
    let offset = 0;
    for (const [i, document] of documents.entries()) {
      const place = { pack: sha256(pack), offset, bytes: document.length, sha256: sha256(document) };
      const spare = refilled && first + i === 0 ? { spare: groups - 1 } : {};
      places.push(encodeEntry({ taskId: `task/${first + i}`, place, lane: 'rollout', ...spare }));
      offset += document.length;
    }
  }
  const index = Buffer.from(places.map((p) => `${p}\n`).join(''));
  await store.put(objectKey(sha256(index)), index);
  const counts = refilled ? { groups: groups - 1, spares: 1 } : { groups };
  return { index: claimOf(index), ...counts, groupSize: size };
}

/** The ledger's side of collecting, as the real one has it: boundaries are fixed once, commits are compare-and-set. */
export class FakeLedger implements CollectorLedger {
  shards = 0;
  committed = 0;
  link = '';
  private fixed = 0;
  private readonly all: readonly LedgerEntry[];

  constructor(entries: readonly LedgerEntry[]) {
    this.all = entries;
  }

  async fixShard({ most, least, final }: ShardBounds): Promise<FixedShard | null> {
    if (this.fixed <= this.committed) {
      const n = this.all.length - this.committed;
      if (n === 0 || (n < least && !final)) return null;
      this.fixed = this.committed + Math.min(n, most);
    }
    return { number: this.shards, from: this.committed + 1, to: this.fixed, link: this.link };
  }

  async entries(from: number, to: number): Promise<LedgerEntry[]> {
    return this.all.slice(from - 1, to);
  }

  async commit(shard: { number: number; to: number; link: string }): Promise<'committed' | 'superseded'> {
    if (shard.number !== this.shards) return 'superseded';
    this.shards++;
    this.committed = shard.to;
    this.link = shard.link;
    return 'committed';
  }
}

export async function collectAll(store: Store, fixture: RunFixture, ledger: CollectorLedger, most = 3): Promise<void> {
  const bounds: ShardBounds = { most, least: 1, final: true };
  while ((await collectShard(store, ledger, fixture.identity, bounds)).kind !== 'idle');
}

/** A finished run in the store. */
export async function finishedRun(store: Store, run: string, options = {}): Promise<RunFixture> {
  const fixture = await makeRun(store, run, options);
  await collectAll(store, fixture, new FakeLedger(fixture.entries));
  await finishRun(store, fixture.finished);
  return fixture;
}

export async function keysOf(store: Store, prefix = ''): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix)) keys.push(key);
  return keys;
}
