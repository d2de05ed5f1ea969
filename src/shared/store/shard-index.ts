// The index beside a shard: its place in the chain, the groups in it, and where every claim of its records lies.
// It is put before its shard; a shard that is there with a fitting index is committed as far as the store is asked.

import { z } from 'zod';
import { type Placement, placementSchema } from './content.ts';
import { countsSchema } from './shard-record.ts';

const hex = z.string().regex(/^[0-9a-f]{64}$/);

const shardIndexSchema = z.strictObject({
  format: z.literal(1),
  run: z.string(),
  incarnation: z.string().regex(/^[0-9a-f]+$/),
  number: z.int().nonnegative(),
  from_seq: z.int().positive(),
  to_seq: z.int().positive(),
  records: z.int().positive(),
  /** The link over everything before this shard. */
  previous: hex,
  /** `raw_bytes`: size before compression, newlines included. */
  shard: z.strictObject({ sha256: hex, bytes: z.int().positive(), raw_bytes: z.int().positive() }),
  /** Group numbers in the order of the records. */
  groups: z.array(z.int().nonnegative()),
  /** Groups that refill degenerate ones of this shard, in the order of the records; left out where there are none. */
  refills: z.array(z.int().positive()).min(1).optional(),
  counts: countsSchema,
  packs: z.array(z.strictObject({ sha256: hex, bytes: z.int().positive() })),
  /** Sorted by hash; each claim of the records once, and nothing else. */
  claims: z.array(placementSchema),
});
export type ShardIndex = z.infer<typeof shardIndexSchema>;

/** An index says little about a group; a shard has at most this much of it, decompressed. */
export const INDEX_MAX_BYTES = 256 * 1024 * 1024;

export function renderShardIndex(index: ShardIndex): string {
  return `${JSON.stringify(index)}\n`;
}

/** Never throws. */
export function parseShardIndex(text: string): { index: ShardIndex } | { fault: string } {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    return { fault: 'is not JSON' };
  }
  const parsed = shardIndexSchema.safeParse(data);
  if (parsed.success) return { index: parsed.data };
  const issue = parsed.error.issues[0];
  return { fault: `is not a shard's index (${issue?.path.join('.') || 'root'}: ${issue?.message ?? 'unknown'})` };
}

/** Claims by hash. */
export function placements(index: ShardIndex): Map<string, Placement> {
  return new Map(index.claims.map((p) => [p.sha256, p]));
}
