// Names and links of shards: `runs/RUN/shards/NNNNNN-SHA.jsonl.gz` with its index beside it, SHA being the hash of
// the shard's stored bytes. Each index carries the link over all before it, so that a shard fits in one place only.
import { sha256 } from '../claim.js';
export function genesis(run, incarnation) {
    return sha256(`rollout-farm\n${run}\n${incarnation}\n`);
}
export function nextLink(previous, shardSha256, indexSha256) {
    return sha256(`${previous}\n${shardSha256}\n${indexSha256}\n`);
}
export function runPrefix(run) {
    return `runs/${run}/`;
}
export function manifestKey(run) {
    return `runs/${run}/manifest.json`;
}
export function shardPrefix(run, number) {
    return `runs/${run}/shards/${String(number).padStart(6, '0')}-`;
}
export function shardKey(run, number, digest) {
    return `${shardPrefix(run, number)}${digest}.jsonl.gz`;
}
export function shardIndexKey(run, number, digest) {
    return `${shardPrefix(run, number)}${digest}.index.json.gz`;
}
/** Number and hash of a shard's key, or null if it is not exactly one. */
export function parseShardKey(run, key) {
    const match = /\/(\d{6,9})-([0-9a-f]{64})\.jsonl\.gz$/.exec(key);
    if (!match)
        return null;
    const number = Number(match[1]);
    const digest = match[2];
    return shardKey(run, number, digest) === key ? { number, sha256: digest } : null;
}
