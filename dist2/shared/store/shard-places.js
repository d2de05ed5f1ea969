// Where the contents lie that a run's records claim: the union of its shards' indexes.
import { inputError } from '../errors.js';
import { gunzipBounded } from './content.js';
import { committedShards } from './results.js';
import { INDEX_MAX_BYTES, parseShardIndex, placements } from './shard-index.js';
import { shardIndexKey } from './shard-name.js';
/** By the content's sha256. Throws FarmError (exit 2) for an index that is gone or broken. */
export async function runPlacements(store, run) {
    const all = new Map();
    for (const shard of await committedShards(store, run)) {
        const key = shardIndexKey(run, shard.number, shard.sha256);
        const bytes = await store.get(key);
        const plain = bytes === null ? { fault: 'is not there' } : await gunzipBounded(bytes, INDEX_MAX_BYTES);
        const parsed = 'fault' in plain ? plain : parseShardIndex(plain.content.toString());
        if ('fault' in parsed)
            throw inputError('store_broken', `${key} in ${store.address}: ${parsed.fault}`, `./farm verify-run ${run} names all that is broken`);
        for (const [hex, place] of placements(parsed.index))
            all.set(hex, place);
    }
    return all;
}
