// Names and links of shards: `runs/RUN/shards/NNNNNN-SHA.jsonl.gz` with its index beside it, SHA being the hash of
// the shard's stored bytes. Each index carries the link over all before it, so that a shard fits in one place only.

import { sha256 } from '../claim.ts';

/** Hash over a run's identity and every shard and index so far. */
export type ChainLink = string;

export function genesis(run: string, incarnation: string): ChainLink {
  return sha256(`rollout-farm\n${run}\n${incarnation}\n`);
}

export function nextLink(previous: ChainLink, shardSha256: string, indexSha256: string): ChainLink {
  return sha256(`${previous}\n${shardSha256}\n${indexSha256}\n`);
}

export function runPrefix(run: string): string {
  return `runs/${run}/`;
}

export function manifestKey(run: string): string {
  return `runs/${run}/manifest.json`;
}

export function shardPrefix(run: string, number: number): string {
  return `runs/${run}/shards/${String(number).padStart(6, '0')}-`;
}

export function shardKey(run: string, number: number, digest: string): string {
  return `${shardPrefix(run, number)}${digest}.jsonl.gz`;
}

export function shardIndexKey(run: string, number: number, digest: string): string {
  return `${shardPrefix(run, number)}${digest}.index.json.gz`;
}

export interface ShardName {
  number: number;
  sha256: string;
}

/** Of a shard's key, or null if it is not exactly one. */
export function parseShardKey(run: string, key: string): ShardName | null {
  return parseKey(run, key, shardKey);
}

/** Of the key of a shard's index, or null if it is not exactly one. */
export function parseShardIndexKey(run: string, key: string): ShardName | null {
  return parseKey(run, key, shardIndexKey);
}

function parseKey(run: string, key: string, keyOf: typeof shardKey): ShardName | null {
  const match = /\/(\d{6,9})-([0-9a-f]{64})\.[a-z.]+$/.exec(key);
  if (!match) return null;
  const number = Number(match[1]);
  const digest = match[2] as string;
  return keyOf(run, number, digest) === key ? { number, sha256: digest } : null;
}
