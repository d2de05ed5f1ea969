// What the store itself says about a run's shards: the longest chain from the genesis in which every shard has the
// hash of its name, a fitting index, and the next range. A collector adopts these, also when Redis knows nothing
// of them. Everything else in the run's folder is a stray: set aside here, deleted once the manifest is written.

import { gunzipBounded, sha256Away } from './content.ts';
import { INDEX_MAX_BYTES, parseShardIndex, type ShardIndex } from './shard-index.ts';
import {
  type ChainLink,
  genesis,
  manifestKey,
  nextLink,
  parseShardKey,
  runPrefix,
  shardIndexKey,
  shardKey,
  shardPrefix,
} from './shard-name.ts';
import type { Counts } from './shard-record.ts';
import type { Store } from './store.ts';

export interface SoundShard {
  number: number;
  from: number;
  to: number;
  records: number;
  bytes: number;
  sha256: string;
  indexBytes: number;
  indexSha256: string;
  /** The link over this shard and all before it. */
  link: ChainLink;
  /** Group numbers in the order of their seq. */
  groups: number[];
  /** Groups that degenerate ones of these call for. */
  refills: number[];
  counts: Counts;
}

export interface Survey {
  /** Of the first shard; null if there is none. */
  incarnation: string | null;
  shards: SoundShard[];
  /** Keys in the run's folder that belong neither to a sound shard nor to the manifest. */
  strays: string[];
}

export interface SurveyOptions {
  /** Leave the shards unread and trust their names: for readers, who check each shard when they come to it. Indexes are read always. */
  namesOnly?: boolean;
  /** Where the ledger says that the chain ends: decides between two that are both sound. */
  link?: ChainLink | null;
}

export async function surveyShards(store: Store, run: string, options: SurveyOptions = {}): Promise<Survey> {
  const keys: string[] = [];
  const candidates = new Map<number, Candidate[]>();
  for await (const { key, bytes } of store.list(runPrefix(run))) {
    keys.push(key);
    const name = parseShardKey(run, key);
    if (name) candidates.set(name.number, [...(candidates.get(name.number) ?? []), { ...name, bytes }]);
  }
  const place: Place = { store, run, candidates, readShards: options.namesOnly !== true, link: options.link ?? null };
  const chain = withoutRepeats(await extend(place, null));
  const expected = new Set([manifestKey(run)]);
  for (const { number, sha256 } of chain.shards)
    expected.add(shardKey(run, number, sha256)).add(shardIndexKey(run, number, sha256));
  return { ...chain, strays: keys.filter((key) => !expected.has(key)) };
}

interface Candidate {
  number: number;
  sha256: string;
  bytes: number;
}

interface Place {
  store: Store;
  run: string;
  candidates: ReadonlyMap<number, Candidate[]>;
  readShards: boolean;
  link: ChainLink | null;
}

interface Chain {
  incarnation: string | null;
  shards: SoundShard[];
}

interface End {
  incarnation: string;
  number: number;
  to: number;
  link: ChainLink;
}

/** Goes on from `end`. Where several shards fit (encoders of two versions), the one with the longer chain behind it counts. */
async function extend(place: Place, end: End | null): Promise<Chain> {
  const shards: SoundShard[] = [];
  let at = end;
  for (;;) {
    const number = at === null ? 0 : at.number + 1;
    const fitting: { shard: SoundShard; end: End }[] = [];
    for (const candidate of place.candidates.get(number) ?? []) {
      const sound = await examine(place, candidate, at);
      if (sound) fitting.push(sound);
    }
    if (fitting.length > 1) {
      let best: Chain = { incarnation: at?.incarnation ?? null, shards: [] };
      for (const option of fitting) {
        const rest = await extend(place, option.end);
        const chain = { incarnation: option.end.incarnation, shards: [option.shard, ...rest.shards] };
        if (rank(place, chain) > rank(place, best)) best = chain;
      }
      return { incarnation: best.incarnation, shards: [...shards, ...best.shards] };
    }
    const only = fitting[0];
    if (only === undefined) return { incarnation: at?.incarnation ?? null, shards };
    shards.push(only.shard);
    at = only.end;
  }
}

function rank(place: Place, chain: Chain): number {
  return place.link !== null && chain.shards.at(-1)?.link === place.link
    ? Number.POSITIVE_INFINITY
    : chain.shards.length;
}

/** Sound shards of that number which go on from `previous`: what a collector finds that somebody else has put already. */
export async function shardsThatFit(
  store: Store,
  run: string,
  number: number,
  previous: { incarnation: string; to: number; link: ChainLink },
): Promise<SoundShard[]> {
  const place: Place = { store, run, candidates: new Map(), readShards: true, link: null };
  const found: SoundShard[] = [];
  for await (const { key, bytes } of store.list(shardPrefix(run, number))) {
    const name = parseShardKey(run, key);
    if (name === null) continue;
    const sound = await examine(place, { ...name, bytes }, { ...previous, number: number - 1 });
    if (sound) found.push(sound.shard);
  }
  return found;
}

async function examine(
  { store, run, readShards }: Place,
  { number, sha256: digest, bytes: size }: Candidate,
  end: End | null,
): Promise<{ shard: SoundShard; end: End } | null> {
  const found = await readIndex(store, run, number, digest);
  if (!found) return null;
  const { index, indexSha256, indexBytes } = found;
  const incarnation = end?.incarnation ?? index.incarnation;
  const previous = end?.link ?? genesis(run, incarnation);
  const fits =
    index.run === run &&
    index.number === number &&
    index.incarnation === incarnation &&
    index.previous === previous &&
    index.from_seq === (end?.to ?? 0) + 1 &&
    index.records === index.to_seq - index.from_seq + 1 &&
    index.groups.length === index.records &&
    index.shard.sha256 === digest &&
    index.shard.bytes === size;
  if (!fits) return null;
  if (readShards) {
    const bytes = await store.get(shardKey(run, number, digest));
    if (bytes === null || (await sha256Away(bytes)) !== digest) return null;
  }
  const link = nextLink(previous, digest, indexSha256);
  return {
    shard: {
      number,
      from: index.from_seq,
      to: index.to_seq,
      records: index.records,
      bytes: size,
      sha256: digest,
      indexBytes,
      indexSha256,
      link,
      groups: index.groups,
      refills: index.refills ?? [],
      counts: index.counts,
    },
    end: { incarnation, number, to: index.to_seq, link },
  };
}

/** Null if it is not there, or is no shard's index. */
export async function readIndex(
  store: Store,
  run: string,
  number: number,
  digest: string,
): Promise<{ index: ShardIndex; indexSha256: string; indexBytes: number } | null> {
  const bytes = await store.get(shardIndexKey(run, number, digest));
  if (bytes === null) return null;
  const plain = await gunzipBounded(bytes, INDEX_MAX_BYTES);
  if ('fault' in plain) return null;
  const parsed = parseShardIndex(plain.content.toString());
  if ('fault' in parsed) return null;
  return { index: parsed.index, indexSha256: await sha256Away(bytes), indexBytes: bytes.byteLength };
}

/** A group can be closed once: a chain that names one again is sound only up to there. */
function withoutRepeats(chain: Chain): Chain {
  const seen = new Set<number>();
  const cut = chain.shards.findIndex((shard) => shard.groups.some((g) => seen.size === seen.add(g).size));
  return cut < 0 ? chain : { ...chain, shards: chain.shards.slice(0, cut) };
}
