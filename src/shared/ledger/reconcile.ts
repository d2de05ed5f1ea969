// The ledger beside the store's shards. After Redis came back as another server (restarted, restored, failed over) it may lack
// what was acknowledged; and a collector may have died between a shard's put and its commit, with a ledger that lacks nothing.
// Groups in committed shards win; what the ledger closed beyond them stays wherever it goes on from them, else it is begun anew.
// Who opens the run, its driver and a collector do this, whoever comes first; a second time changes nothing.

import { isDeepStrictEqual } from 'node:util';
import type { RunIdentity } from '../group.ts';
import type { Log } from '../log.ts';
import { shardLines } from '../store/results.ts';
import { genesis } from '../store/shard-name.ts';
import { renderLine } from '../store/shard-record.ts';
import { type SoundShard, shardsThatFit, surveyShards } from '../store/shard-survey.ts';
import type { Store } from '../store/store.ts';
import type { RunLedger } from './run-ledger.ts';

/** False if Redis changed again meanwhile, or does not know the run: to be asked again. */
export async function reconcile(ledger: RunLedger, store: Store, identity: RunIdentity, log: Log): Promise<boolean> {
  const { run, incarnation } = identity;
  const server = await ledger.server();
  const { state, shards = '0', committed = '0', link } = await ledger.fields();
  if (state === undefined) return false;
  const end = { incarnation, to: Number(committed), link: link || genesis(run, incarnation) };
  const behind = (await shardsThatFit(store, run, Number(shards), end)).length > 0;
  const followed = behind
    ? await followStore(ledger, store, identity, (await surveyShards(store, run)).shards)
    : 'even';
  const done = await ledger.reconciled(server);
  if (done && followed === 'adopted') log.warn({ run, server }, 'Redis has lost writes: the ledger follows the store');
  else if (done) log.warn({ run, server }, 'Redis came back as another server; its ledger has all that the store has');
  return done;
}

/**
 * Takes over `shards`, all that the store has. `committed`: the ledger had closed the same groups, and keeps those that closed
 * after them. `adopted`: it had not, so Redis has lost writes, and what is beyond the shards is begun anew.
 */
export async function followStore(
  ledger: RunLedger,
  store: Store,
  identity: RunIdentity,
  shards: readonly SoundShard[],
): Promise<'even' | 'committed' | 'adopted'> {
  const server = await ledger.server();
  for (let did: 'even' | 'committed' = 'even'; ; did = 'committed') {
    const next = shards[Number((await ledger.field('shards')) ?? 0)];
    if (next === undefined) return did;
    if ((await hasClosed(ledger, store, identity, next)) && (await ledger.catchUp(server, next))) continue;
    return (await ledger.adopt(shards)) ? 'adopted' : did;
  }
}

/** Whether the ledger's stream has the groups of that shard, as they are in it. */
async function hasClosed(ledger: RunLedger, store: Store, identity: RunIdentity, shard: SoundShard): Promise<boolean> {
  const entries = await ledger.entries(shard.from, shard.to);
  if (entries.length !== shard.records) return false;
  const lines = await shardLines(store, identity.run, shard);
  return isDeepStrictEqual(
    entries.map((entry) => renderLine(identity, entry.closed)),
    lines,
  );
}
