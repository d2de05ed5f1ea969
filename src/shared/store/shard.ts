// A shard's bytes as a pure function of the ledger's entries: records as JSON lines, one pack with the small
// contents, the index, and the link for the next. Two collectors, or one after a kill, make the same bytes.
// Refuses entries that are not dense, or whose content is not what its claim says: nothing unsound is written.

import { type Claim, packKey, sha256 } from '../claim.ts';
import { EXIT, FarmError, messageOf } from '../errors.ts';
import { type ClosedGroup, type RunIdentity, refillOf } from '../group.ts';
import { decodeContent, gunzipTogether, gzipSteady, ownObject, type Placement, sha256Away } from './content.ts';
import { renderShardIndex } from './shard-index.ts';
import { type ChainLink, nextLink, shardIndexKey, shardKey } from './shard-name.ts';
import { type Counts, claimsOf, countGroup, noCounts, renderLine, sumCounts } from './shard-record.ts';

/** A closed group as the ledger keeps it, with the contents that travelled in `accept`. */
export interface LedgerEntry {
  seq: number;
  closed: ClosedGroup;
  /** Contents as `putContent` compressed them, by the hash of the plain content. Claims that are not here are objects of their own. */
  blobs: readonly { sha256: string; bytes: Buffer }[];
}

interface StoredFile {
  key: string;
  bytes: Buffer;
}

export interface BuiltShard {
  number: number;
  from: number;
  to: number;
  records: number;
  /** Group numbers in the order of their seq. */
  groups: number[];
  /** Groups that degenerate ones of these call for. */
  refills: number[];
  counts: Counts;
  shard: StoredFile;
  index: StoredFile;
  /** None, or one. */
  packs: StoredFile[];
  /** Claims of the records that must already lie in the store as objects of their own. */
  objects: Claim[];
  sha256: string;
  indexSha256: string;
  /** For the next shard. */
  link: ChainLink;
}

export async function buildShard(
  identity: RunIdentity,
  number: number,
  previous: ChainLink,
  entries: readonly LedgerEntry[],
): Promise<BuiltShard> {
  const first = entries[0];
  if (first === undefined) throw broken(identity.run, 'a shard without a group');
  const lines: string[] = [];
  const counts = noCounts();
  const shelf = new Shelf(identity.run, blobsOf(entries));
  for (const [i, { seq, closed }] of entries.entries()) {
    if (seq !== first.seq + i || closed.seq !== seq)
      throw broken(identity.run, `group ${closed.group} has seq ${closed.seq}, and ${first.seq + i} is next`);
    try {
      lines.push(renderLine(identity, closed), '\n');
    } catch (error) {
      throw broken(identity.run, `group ${closed.group} is not well formed: ${messageOf(error)}`);
    }
    countGroup(counts, closed);
    for (const member of closed.members)
      if (member.status === 'completed')
        for (const claim of claimsOf(member)) shelf.add(claim, `group ${closed.group}, member ${member.member}`);
  }

  await shelf.check();

  const raw = Buffer.from(lines.join(''));
  const bytes = await gzipSteady(raw);
  const digest = await sha256Away(bytes);
  const pack = shelf.pack();
  const to = first.seq + entries.length - 1;
  const groups = entries.map((e) => e.closed.group);
  const refills = entries.flatMap((e) => refillOf(e.closed) ?? []);
  const index = await gzipSteady(
    Buffer.from(
      renderShardIndex({
        format: 1,
        run: identity.run,
        incarnation: identity.incarnation,
        number,
        from_seq: first.seq,
        to_seq: to,
        records: entries.length,
        previous,
        shard: { sha256: digest, bytes: bytes.byteLength, raw_bytes: raw.byteLength },
        groups,
        ...(refills.length > 0 ? { refills } : {}),
        counts: sumCounts([counts]),
        packs: pack ? [{ sha256: pack.sha256, bytes: pack.bytes.byteLength }] : [],
        claims: shelf.placements(pack?.sha256 ?? ''),
      }),
    ),
  );
  const indexSha256 = await sha256Away(index);
  return {
    number,
    from: first.seq,
    to,
    records: entries.length,
    groups,
    refills,
    counts: sumCounts([counts]),
    shard: { key: shardKey(identity.run, number, digest), bytes },
    index: { key: shardIndexKey(identity.run, number, digest), bytes: index },
    packs: pack ? [{ key: packKey(pack.sha256), bytes: pack.bytes }] : [],
    objects: shelf.objects,
    sha256: digest,
    indexSha256,
    link: nextLink(previous, digest, indexSha256),
  };
}

/** Equal contents of a shard are kept once, as the first entry has them. */
function blobsOf(entries: readonly LedgerEntry[]): Map<string, Buffer> {
  const blobs = new Map<string, Buffer>();
  for (const entry of entries)
    for (const { sha256: hex, bytes } of entry.blobs) if (!blobs.has(hex)) blobs.set(hex, bytes);
  return blobs;
}

/** A small content as it travelled. */
interface Slice {
  claim: Claim;
  /** Whose it is, for messages. */
  whose: string;
  placement: Placement;
  offset: number;
  blob: Buffer;
}

/** Contents unpacked in one step: setting up for one costs more than unpacking it. */
const TOGETHER = 64;
const GZIP_MAGIC = 0x1f8b;
/** Head and trailer. */
const GZIP_AROUND = 18;

/** Whether each is a gzip of its own with the content that its claim says; false also where only a closer look can tell. */
function soundTogether(slices: readonly Slice[]): boolean {
  const bytes = slices.reduce((n, { claim }) => n + claim.bytes, 0);
  const whole = slices.every(
    ({ claim, blob }) =>
      blob.byteLength > GZIP_AROUND &&
      blob.readUInt16BE(0) === GZIP_MAGIC &&
      blob.readUInt32LE(blob.byteLength - 4) === claim.bytes,
  );
  const content = whole
    ? gunzipTogether(
        slices.map((s) => s.blob),
        bytes,
      )
    : null;
  if (content === null) return false;
  let at = 0;
  return slices.every(({ claim }) => {
    const from = at;
    at += claim.bytes;
    return sha256(content.subarray(from, at)) === claim.sha256;
  });
}

/** The claims of a shard in the order in which its records name them. */
class Shelf {
  readonly objects: Claim[] = [];
  private readonly run: string;
  private readonly blobs: ReadonlyMap<string, Buffer>;
  private readonly sizes = new Map<string, number>();
  private readonly slices: Slice[] = [];
  private packBytes = 0;

  constructor(run: string, blobs: ReadonlyMap<string, Buffer>) {
    this.run = run;
    this.blobs = blobs;
  }

  add(claim: Claim, whose: string): void {
    if (claim.key !== `sha256/${claim.sha256}`)
      throw broken(this.run, `${whose}: the claim ${claim.key} has the hash ${claim.sha256}`);
    const size = this.sizes.get(claim.sha256);
    if (size !== undefined) {
      if (size !== claim.bytes)
        throw broken(this.run, `${whose}: ${claim.key} is claimed with ${size} and with ${claim.bytes} bytes`);
      return;
    }
    this.sizes.set(claim.sha256, claim.bytes);
    const blob = this.blobs.get(claim.sha256);
    if (blob === undefined) {
      this.objects.push(claim);
      return;
    }
    const placement: Placement = {
      ...ownObject(claim),
      stored_bytes: blob.byteLength,
      stored_sha256: sha256(blob),
      enc: 'gzip',
    };
    this.slices.push({ claim, whose, placement, offset: this.packBytes, blob });
    this.packBytes += blob.byteLength;
  }

  /** Refuses what is not the content that its claim says. Those that stand together are unpacked together; one alone says what is wrong. */
  async check(): Promise<void> {
    for (let i = 0; i < this.slices.length; i += TOGETHER) {
      const some = this.slices.slice(i, i + TOGETHER);
      if (soundTogether(some)) continue;
      for (const { claim, whose, placement, blob } of some) {
        const content = await decodeContent(blob, claim, placement);
        if ('fault' in content) throw broken(this.run, `${whose}: ${claim.key} as it travelled: ${content.fault}`);
      }
    }
  }

  pack(): { sha256: string; bytes: Buffer } | null {
    if (this.slices.length === 0) return null;
    const bytes = Buffer.concat(this.slices.map((s) => s.blob));
    return { sha256: sha256(bytes), bytes };
  }

  placements(pack: string): Placement[] {
    const packed = this.slices.map(({ placement, offset }): Placement => {
      const { sha256: hex, bytes, stored_bytes, stored_sha256, enc } = placement;
      return { sha256: hex, bytes, stored_bytes, stored_sha256, enc, pack, offset };
    });
    return [...packed, ...this.objects.map(ownObject)].sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1));
  }
}

function broken(run: string, what: string): FarmError {
  return new FarmError('ledger_entry_broken', `run ${run}: ${what}`, {
    exit: EXIT.unsound,
    hint: 'this is a fault in the farm or in its Redis; nothing was written',
  });
}
