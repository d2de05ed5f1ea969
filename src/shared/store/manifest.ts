// The manifest: written last, so that it is a promise that everything else is there. One canonical form (fixed key
// order, two-space indent, one newline at the end) with its own hash inside, so that any changed byte is a fault.
// It has no times and no places in it: two collectors that finish a run write the same one.

import { z } from 'zod';
import { claimSchema, sha256 } from '../claim.ts';
import { messageOf } from '../errors.ts';
import { CONVENTIONS } from '../group.ts';
import { dumpJson, parseJson, toValue } from '../json/json.ts';
import { isMap, type Value, type ValueMap } from '../json/value.ts';
import { planRefSchema } from '../plan/plan.ts';
import { manifestKey, shardIndexKey, shardKey } from './shard-name.ts';
import { countsSchema, sumCounts } from './shard-record.ts';
import type { SoundShard } from './shard-survey.ts';

const hex = z.string().regex(/^[0-9a-f]{64}$/);

const shardEntrySchema = z.strictObject({
  number: z.int().nonnegative(),
  from_seq: z.int().positive(),
  to_seq: z.int().positive(),
  records: z.int().positive(),
  bytes: z.int().positive(),
  sha256: hex,
  index_bytes: z.int().positive(),
  index_sha256: hex,
});
export type ShardEntry = z.infer<typeof shardEntrySchema>;

const manifestSchema = z.strictObject({
  format: z.literal(1),
  run: z.string(),
  incarnation: z.string().regex(/^[0-9a-f]+$/),
  state: z.enum(['done', 'cancelled']),
  convention: z.enum(CONVENTIONS),
  counts: countsSchema,
  plan: planRefSchema,
  /** Other objects that the run rests on: the resolved spec, input files. */
  inputs: z.array(claimSchema),
  spec_sha256: hex,
  shards: z.array(shardEntrySchema),
  /** The link over the last shard; the genesis if there is none. */
  link: hex,
  sha256: hex,
});
/** `spec` is apart, because it keeps ints and floats as they are. */
export type Manifest = z.infer<typeof manifestSchema> & { spec: ValueMap };
/** What the manifest does not say about itself. */
export type ManifestInput = Omit<Manifest, 'format' | 'spec_sha256' | 'sha256'>;

/** The hash of a resolved spec: what decides whether an id is resumed or refused, and what the manifest carries. */
export function documentSha256(document: ValueMap): string {
  return sha256(dumpJson(document, { sortKeys: true, compact: true }));
}

export function buildManifest(input: ManifestInput): Buffer {
  const write = (own: string): string => {
    const value = toValue({
      format: 1,
      run: input.run,
      incarnation: input.incarnation,
      state: input.state,
      convention: input.convention,
      counts: sumCounts([input.counts]),
      plan: {
        index: claimFields(input.plan.index),
        groups: input.plan.groups,
        groupSize: input.plan.groupSize,
        ...(input.plan.spares === undefined ? {} : { spares: input.plan.spares }),
      },
      inputs: input.inputs.map(claimFields),
      spec_sha256: documentSha256(input.spec),
      spec: input.spec,
      shards: input.shards.map((s) => ({
        number: s.number,
        from_seq: s.from_seq,
        to_seq: s.to_seq,
        records: s.records,
        bytes: s.bytes,
        sha256: s.sha256,
        index_bytes: s.index_bytes,
        index_sha256: s.index_sha256,
      })),
      link: input.link,
      sha256: own,
    });
    return `${dumpJson(value, { indent: 2 })}\n`;
  };
  return Buffer.from(write(sha256(write(''))));
}

/** Refuses all but the exact bytes that `buildManifest` makes. Never throws. */
export function parseManifest(bytes: Buffer): { manifest: Manifest } | { fault: string } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const value = parseJson(text, { duplicates: 'error' });
    if (!isMap(value)) return { fault: 'is not an object' };
    const spec = value.get('spec');
    if (!isMap(spec)) return { fault: 'has no spec' };
    const rest = new Map([...value].filter(([key]) => key !== 'spec'));
    const parsed = manifestSchema.safeParse(plain(rest));
    if (!parsed.success) {
      const issue = parsed.error.issues[0];
      return { fault: `is not a manifest (${issue?.path.join('.') || 'root'}: ${issue?.message ?? 'unknown'})` };
    }
    const manifest: Manifest = { ...parsed.data, spec };
    if (!buildManifest(manifest).equals(bytes)) return { fault: 'is not what was written (its own hash, or its form)' };
    return { manifest };
  } catch (error) {
    return { fault: `is not sound JSON: ${messageOf(error)}` };
  }
}

/** Of everything in the run's folder that it promises, its own among them. */
export function promisedKeys({ run, shards }: Manifest): Set<string> {
  const keys = new Set([manifestKey(run)]);
  for (const { number, sha256: digest } of shards)
    keys.add(shardKey(run, number, digest)).add(shardIndexKey(run, number, digest));
  return keys;
}

/** A surveyed shard as the manifest lists it. */
export function shardEntry(shard: SoundShard): ShardEntry {
  return {
    number: shard.number,
    from_seq: shard.from,
    to_seq: shard.to,
    records: shard.records,
    bytes: shard.bytes,
    sha256: shard.sha256,
    index_bytes: shard.indexBytes,
    index_sha256: shard.indexSha256,
  };
}

function claimFields(claim: z.infer<typeof claimSchema>): Record<string, unknown> {
  return { key: claim.key, sha256: claim.sha256, bytes: claim.bytes };
}

/** A Value as ordinary data, for a schema: ints beyond 2^53 stay bigints and are then refused. */
function plain(value: Value): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  if (Array.isArray(value)) return value.map(plain);
  return isMap(value) ? Object.fromEntries([...value].map(([key, x]) => [key, plain(x)])) : value;
}
