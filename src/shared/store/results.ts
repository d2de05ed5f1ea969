// Closed groups from the store, in the order in which they closed and with the cursors they always had: of a
// finished run by its manifest, of an unfinished one by what its committed shards hold. One shard in memory at a
// time. Refuses a shard that is not what it was promised to be: half a result is none.

import { inputError } from '../errors.ts';
import { gunzipBounded, sha256Away } from './content.ts';
import { parseManifest } from './manifest.ts';
import { manifestKey, shardKey } from './shard-name.ts';
import { surveyShards } from './shard-survey.ts';
import type { Store } from './store.ts';

/** One closed group: its line without a newline, as `renderLine` made it. */
export interface ResultLine {
  seq: number;
  line: string;
}

/** What it takes to find a shard. */
export interface ShardRange {
  number: number;
  from: number;
  to: number;
  sha256: string;
}

/** A shard is bounded where it is fixed; this only stops a forged one from filling memory. */
export const SHARD_MAX_BYTES = 512 * 1024 * 1024 - 1024;

/** Groups with a seq above `afterSeq`. Ends where the committed shards end. */
export async function* resultsFromStore(store: Store, run: string, afterSeq: number): AsyncGenerator<ResultLine> {
  yield* resultsFromShards(store, run, await committedShards(store, run), afterSeq);
}

/** The same where the shards are known already, as they are to the ledger: no survey. */
async function* resultsFromShards(
  store: Store,
  run: string,
  shards: readonly ShardRange[],
  afterSeq: number,
): AsyncGenerator<ResultLine> {
  for (const shard of shards) {
    if (shard.to <= afterSeq) continue;
    const lines = await shardLines(store, run, shard);
    for (const [i, line] of lines.entries()) {
      const seq = shard.from + i;
      if (seq > afterSeq) yield { seq, line };
    }
  }
}

/** By the manifest if there is one, else by survey. */
export async function committedShards(store: Store, run: string): Promise<ShardRange[]> {
  const bytes = await store.get(manifestKey(run));
  if (bytes === null) return (await surveyShards(store, run, { namesOnly: true })).shards;
  const parsed = parseManifest(bytes);
  if ('fault' in parsed) throw broken(store, manifestKey(run), parsed.fault);
  return parsed.manifest.shards.map((s) => ({ number: s.number, from: s.from_seq, to: s.to_seq, sha256: s.sha256 }));
}

/** The records of one shard, in the order of their seq. Throws FarmError where it is not what it was promised to be. */
export async function shardLines(store: Store, run: string, shard: ShardRange): Promise<string[]> {
  const key = shardKey(run, shard.number, shard.sha256);
  const bytes = await store.get(key);
  if (bytes === null) throw broken(store, key, 'is not there');
  if ((await sha256Away(bytes)) !== shard.sha256) throw broken(store, key, 'was changed: its hash is not its name');
  const plain = await gunzipBounded(bytes, SHARD_MAX_BYTES);
  if ('fault' in plain) throw broken(store, key, plain.fault);
  const lines = plain.content.toString().split('\n');
  lines.pop();
  if (lines.length !== shard.to - shard.from + 1)
    throw broken(store, key, `has ${lines.length} records for seq ${shard.from} to ${shard.to}`);
  return lines;
}

function broken(store: Store, key: string, what: string): Error {
  return inputError(
    'store_broken',
    `${key} in ${store.address}: ${what}`,
    'verify-run names all that is broken in a run',
  );
}
