// Shards in a run's folder that another farm has put there, whose run has the same id. While neither run is finished, finding
// one is a reason to stop. Beside a manifest they are left over: their farm found out after it had put them, and never commits them.

import { groupRecordSchema } from '../group.ts';
import { gunzipBounded, sha256Away } from './content.ts';
import { type Manifest, parseManifest, promisedKeys } from './manifest.ts';
import { SHARD_MAX_BYTES } from './results.ts';
import { runsInStore } from './run-claims.ts';
import {
  manifestKey,
  parseShardIndexKey,
  parseShardKey,
  runPrefix,
  type ShardName,
  shardIndexKey,
  shardKey,
  shardPrefix,
} from './shard-name.ts';
import { readIndex } from './shard-survey.ts';
import type { Store, StoredObject } from './store.ts';

/** Whether somebody else has begun that run here: a shard of that number which is of another incarnation. Null or its key. */
export async function shardOfAnother(
  store: Store,
  run: string,
  number: number,
  incarnation: string,
): Promise<string | null> {
  for await (const { key } of store.list(shardPrefix(run, number))) {
    const name = parseShardKey(run, key);
    const index = name === null ? null : await readIndex(store, run, number, name.sha256);
    if (index !== null && index.index.run === run && index.index.incarnation !== incarnation) return key;
  }
  return null;
}

/** The incarnation of the farm that has left this file, a shard or an index, beside a manifest; null if it is anything else. */
export async function leftByAnother(store: Store, manifest: Manifest, key: string): Promise<string | null> {
  const { run, incarnation } = manifest;
  const name = parseShardKey(run, key) ?? parseShardIndexKey(run, key);
  if (name === null) return null;
  const whose = (await toldByIndex(store, run, name)) ?? (await toldByRecord(store, run, name));
  return whose === incarnation ? null : whose;
}

type FolderFile = { key: string } & StoredObject;

/** What other farms have left in the folders of finished runs: a shard, its index, or both, in the order in which they can go. */
export async function* leftByOthers(store: Store): AsyncGenerator<FolderFile[]> {
  for (const run of await runsInStore(store)) {
    const bytes = await store.get(manifestKey(run));
    const parsed = bytes === null ? null : parseManifest(bytes);
    if (parsed === null || 'fault' in parsed) continue;
    // Not to be looked at again: whoever was given a shard may be removing it while the rest is listed.
    const known = promisedKeys(parsed.manifest);
    for await (const file of store.list(runPrefix(run))) {
      if (known.has(file.key) || (await leftByAnother(store, parsed.manifest, file.key)) === null) continue;
      const index = parseShardIndexKey(run, file.key);
      const shard = parseShardKey(run, file.key);
      if (index !== null) {
        // The shard first: the index is the shorter way to know whose both are.
        const key = shardKey(run, index.number, index.sha256);
        const beside = await store.head(key);
        known.add(key);
        yield beside === null ? [file] : [{ key, ...beside }, file];
      } else if (shard !== null && (await store.head(shardIndexKey(run, shard.number, shard.sha256))) === null)
        yield [file];
    }
  }
}

async function toldByIndex(store: Store, run: string, { number, sha256 }: ShardName): Promise<string | null> {
  const index = (await readIndex(store, run, number, sha256))?.index;
  const own = index?.run === run && index.number === number && index.shard.sha256 === sha256;
  return own ? index.incarnation : null;
}

/** Of a shard whose index is gone: the farm that finished took it for a stray before the shard was put. */
async function toldByRecord(store: Store, run: string, { number, sha256 }: ShardName): Promise<string | null> {
  const bytes = await store.get(shardKey(run, number, sha256));
  if (bytes === null || (await sha256Away(bytes)) !== sha256) return null;
  const plain = await gunzipBounded(bytes, SHARD_MAX_BYTES);
  if ('fault' in plain) return null;
  try {
    const first = plain.content.subarray(0, plain.content.indexOf('\n')).toString();
    const record = groupRecordSchema.parse(JSON.parse(first));
    return record.run === run ? (/^[0-9a-f]+/.exec(record.cursor)?.[0] ?? null) : null;
  } catch {
    return null;
  }
}
