// One round for one run: shards of what is closed, as many as are due; the manifest when nothing more can close.

import { objectKey, sha256 } from '../../shared/claim.ts';
import { FarmError } from '../../shared/errors.ts';
import type { RunIdentity } from '../../shared/group.ts';
import { parseJson } from '../../shared/json/json.ts';
import { isMap, type ValueMap } from '../../shared/json/value.ts';
import { allClosed } from '../../shared/ledger/planned-groups.ts';
import { followStore, reconcile } from '../../shared/ledger/reconcile.ts';
import { RedisChanged, type RunLedger } from '../../shared/ledger/run-ledger.ts';
import { identityOf } from '../../shared/ledger/run-settings.ts';
import type { Log } from '../../shared/log.ts';
import { surveyShards } from '../../shared/store/shard-survey.ts';
import type { Store } from '../../shared/store/store.ts';
import type { KnownRun } from '../runs.ts';
import { type Collected, collectShard } from './collector.ts';
import { finishRun } from './finish.ts';

/** A shard holds at most this many members, so that its entries and its pack stay a few MB. */
const MOST_MEMBERS = 2_048;
/** While the run is at work, a shard waits for this many groups: small shards cost requests for ever. */
const LEAST_GROUPS = 64;
/** In a run that refills degenerate groups, which it does as they are committed. */
const LEAST_REFILLED = 8;

/** `glance`: only for what cannot wait, a full shard or the run's end. `sealed`: there is nothing more to be done for it. */
export async function collectRun(
  ledger: RunLedger,
  known: KnownRun,
  log: Log,
  { glance }: { glance: boolean } = { glance: false },
): Promise<'open' | 'sealed'> {
  const fields = await ledger.fields();
  if (fields.state === undefined) return 'sealed';
  if (fields.manifest !== undefined) {
    // Somebody died between the manifest and this.
    if (fields.state === 'running' || fields.state === 'paused') await ledger.setState('done');
    return 'sealed';
  }
  const closed = Number(fields.closed);
  const over = allClosed(fields);
  // A run that rests (stopped, paused) keeps its closed groups in the stream until it goes on or a shard is full.
  const identity = identityOf(ledger.run, known.settings);
  const most = Math.max(1, Math.floor(MOST_MEMBERS / Number(fields.size)));
  if (glance && !over && closed - Number(fields.committed ?? 0) < most) return 'open';
  const least = known.settings.plan.spares === undefined ? LEAST_GROUPS : LEAST_REFILLED;
  const bounds = { most, least: Math.min(least, most), final: over };
  for (;;) {
    const collected = await collectShard(known.store, ledger, identity, bounds).catch((error: unknown) => error);
    if (!isCollected(collected)) {
      if (await followsStore(ledger, known.store, identity, log, collected)) return 'open';
      throw collected;
    }
    if (collected.kind === 'idle') break;
    log.info(
      { run: ledger.run, shard: collected.shard.number, records: collected.shard.records, ledger: collected.kind },
      'shard',
    );
  }
  // What was just committed, by us or another, may have called for further groups in place of degenerate ones: they are
  // open now, or closed since we looked for a shard.
  const ended = await ledger.fields();
  if (!over || !allClosed(ended) || ended.committed !== ended.closed) return 'open';
  const document = await readDocument(known);
  await finishRun(known.store, {
    identity,
    state: ended.state === 'cancelled' ? 'cancelled' : 'done',
    spec: document.spec,
    plan: known.settings.plan,
    inputs: [document.claim],
    link: ended.link ?? null,
  });
  await ledger.setField('manifest', '1');
  if (ended.state !== 'cancelled') await ledger.setState('done');
  return 'sealed';
}

function isCollected(answer: unknown): answer is Collected {
  return typeof answer === 'object' && answer !== null && 'kind' in answer;
}

/** A Redis that lost writes while the run goes on: groups in committed shards win, what closed beyond them is begun anew. */
async function followsStore(
  ledger: RunLedger,
  store: Store,
  identity: RunIdentity,
  log: Log,
  error: unknown,
): Promise<boolean> {
  if (error instanceof RedisChanged) return await reconcile(ledger, store, identity, log);
  if (!(error instanceof FarmError) || error.code !== 'ledger_behind_store') return false;
  const { shards } = await surveyShards(store, identity.run);
  const followed = await followStore(ledger, store, identity, shards);
  if (followed === 'adopted')
    log.warn(
      { run: identity.run, shards: shards.length, error: error.message },
      'Redis has lost writes: the ledger follows the store',
    );
  return followed !== 'even';
}

async function readDocument({
  settings,
  store,
}: KnownRun): Promise<{ spec: ValueMap; claim: { key: string; sha256: string; bytes: number } }> {
  const bytes = await store.get(objectKey(settings.documentSha256));
  if (bytes === null || sha256(bytes) !== settings.documentSha256)
    throw new Error(`the resolved spec ${settings.documentSha256} is not in ${store.address}`);
  const spec = parseJson(bytes.toString('utf8'));
  if (!isMap(spec)) throw new Error('the resolved spec is not an object');
  return {
    spec,
    claim: { key: `sha256/${settings.documentSha256}`, sha256: settings.documentSha256, bytes: bytes.length },
  };
}
