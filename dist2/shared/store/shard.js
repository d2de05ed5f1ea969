// A shard's bytes as a pure function of the ledger's entries: records as JSON lines, one pack with the small
// contents, the index, and the link for the next. Two collectors, or one after a kill, make the same bytes.
// Refuses entries that are not dense, or whose content is not what its claim says: nothing unsound is written.
import { packKey, sha256 } from '../claim.js';
import { EXIT, FarmError, messageOf } from '../errors.js';
import { decodeContent, gzipSteady, ownObject, sha256Away } from './content.js';
import { renderShardIndex } from './shard-index.js';
import { nextLink, shardIndexKey, shardKey } from './shard-name.js';
import { claimsOf, countGroup, noCounts, renderLine, sumCounts } from './shard-record.js';
export async function buildShard(identity, number, previous, entries) {
    const first = entries[0];
    if (first === undefined)
        throw broken(identity.run, 'a shard without a group');
    const lines = [];
    const counts = noCounts();
    const shelf = new Shelf(identity.run, blobsOf(entries));
    for (const [i, { seq, closed }] of entries.entries()) {
        if (seq !== first.seq + i || closed.seq !== seq)
            throw broken(identity.run, `group ${closed.group} has seq ${closed.seq}, and ${first.seq + i} is next`);
        try {
            lines.push(renderLine(identity, closed), '\n');
        }
        catch (error) {
            throw broken(identity.run, `group ${closed.group} is not well formed: ${messageOf(error)}`);
        }
        countGroup(counts, closed);
        for (const member of closed.members)
            if (member.status === 'completed')
                for (const claim of claimsOf(member))
                    await shelf.add(claim, `group ${closed.group}, member ${member.member}`);
    }
    const raw = Buffer.from(lines.join(''));
    const bytes = await gzipSteady(raw);
    const digest = await sha256Away(bytes);
    const pack = shelf.pack();
    const to = first.seq + entries.length - 1;
    const groups = entries.map((e) => e.closed.group);
    const index = await gzipSteady(Buffer.from(renderShardIndex({
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
        counts: sumCounts([counts]),
        packs: pack ? [{ sha256: pack.sha256, bytes: pack.bytes.byteLength }] : [],
        claims: shelf.placements(pack?.sha256 ?? ''),
    })));
    const indexSha256 = await sha256Away(index);
    return {
        number,
        from: first.seq,
        to,
        records: entries.length,
        groups,
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
function blobsOf(entries) {
    const blobs = new Map();
    for (const entry of entries)
        for (const { sha256: hex, bytes } of entry.blobs)
            if (!blobs.has(hex))
                blobs.set(hex, bytes);
    return blobs;
}
/** The claims of a shard in the order in which its records name them. */
class Shelf {
    objects = [];
    run;
    blobs;
    sizes = new Map();
    slices = [];
    packBytes = 0;
    constructor(run, blobs) {
        this.run = run;
        this.blobs = blobs;
    }
    async add(claim, whose) {
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
        const placement = {
            ...ownObject(claim),
            stored_bytes: blob.byteLength,
            stored_sha256: sha256(blob),
            enc: 'gzip',
        };
        const content = await decodeContent(blob, claim, placement);
        if ('fault' in content)
            throw broken(this.run, `${whose}: ${claim.key} as it travelled: ${content.fault}`);
        this.slices.push({ placement, offset: this.packBytes, blob });
        this.packBytes += blob.byteLength;
    }
    pack() {
        if (this.slices.length === 0)
            return null;
        const bytes = Buffer.concat(this.slices.map((s) => s.blob));
        return { sha256: sha256(bytes), bytes };
    }
    placements(pack) {
        const packed = this.slices.map(({ placement, offset }) => {
            const { sha256: hex, bytes, stored_bytes, stored_sha256, enc } = placement;
            return { sha256: hex, bytes, stored_bytes, stored_sha256, enc, pack, offset };
        });
        return [...packed, ...this.objects.map(ownObject)].sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1));
    }
}
function broken(run, what) {
    return new FarmError('ledger_entry_broken', `run ${run}: ${what}`, {
        exit: EXIT.unsound,
        hint: 'this is a fault in the farm or in its Redis; nothing was written',
    });
}
