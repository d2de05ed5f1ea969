// A shard's claims: each that the records make stands in the index once, nothing else does, each pack is exactly
// its slices, and every slice and object has the promised stored bytes and the claimed content.
import { objectKey, packKey } from '../claim.js';
import { decodeContent, sha256Away } from './content.js';
import { placements } from './shard-index.js';
/** Compares the claims that the records make with the index's, while the records are read. */
export class ClaimTally {
    account;
    indexKey;
    placed;
    unused;
    constructor(account, indexKey, index) {
        this.account = account;
        this.indexKey = indexKey;
        this.placed = placements(index);
        this.unused = new Set(this.placed.keys());
        if (this.placed.size !== index.claims.length)
            account.fault(`${indexKey}: names a claim twice`);
    }
    claim(claim, whose) {
        if (claim.key !== `sha256/${claim.sha256}`)
            this.account.fault(`${whose}: the claim ${claim.key} has the hash ${claim.sha256}`);
        const placement = this.placed.get(claim.sha256);
        if (placement === undefined)
            this.account.fault(`${whose}: the claim ${claim.key} is not in ${this.indexKey}`);
        else if (placement.bytes !== claim.bytes)
            this.account.fault(`${whose}: the claim ${claim.key} has ${claim.bytes} bytes, ${placement.bytes} in ${this.indexKey}`);
        this.unused.delete(claim.sha256);
    }
    end() {
        for (const digest of this.unused)
            this.account.fault(`${this.indexKey}: sha256/${digest} is indexed, and no record claims it`);
    }
}
/** `inspect` is shown every content whose hash is sound. */
export async function verifyPlacements(account, indexKey, index, inspect) {
    const slices = new Map(index.packs.map((p) => [p.sha256, []]));
    const objects = [];
    for (const placement of index.claims) {
        if ('pack' in placement) {
            const list = slices.get(placement.pack);
            if (list)
                list.push({ placement, offset: placement.offset });
            else
                account.fault(`${indexKey}: sha256/${placement.sha256} lies in a pack that the index does not list`);
            continue;
        }
        const whole = placement.object === objectKey(placement.sha256) &&
            placement.enc === 'identity' &&
            placement.stored_sha256 === placement.sha256 &&
            placement.stored_bytes === placement.bytes;
        if (whole)
            objects.push(claimAt(placement));
        else
            account.fault(`${indexKey}: sha256/${placement.sha256} is placed as no object can be`);
    }
    for (const pack of index.packs)
        await verifyPack(account, pack, slices.get(pack.sha256) ?? [], inspect);
    await account.objects(objects, indexKey, inspect);
}
async function verifyPack(account, pack, slices, inspect) {
    const key = packKey(pack.sha256);
    const bytes = await account.get(key);
    if (bytes === null)
        return;
    if (bytes.byteLength !== pack.bytes)
        account.fault(`${key}: has ${bytes.byteLength} bytes where ${pack.bytes} are promised`);
    const found = await sha256Away(bytes);
    if (found !== pack.sha256)
        account.fault(`${key}: has the hash ${found}`);
    let next = 0;
    for (const { placement, offset } of slices.sort((a, b) => a.offset - b.offset)) {
        const whose = `claim sha256/${placement.sha256} in ${key}`;
        if (offset !== next)
            account.fault(`${whose}: begins at ${offset}, and ${next} is next`);
        next = offset + placement.stored_bytes;
        const result = await decodeContent(bytes.subarray(offset, next), claimAt(placement), placement);
        if ('fault' in result)
            account.fault(`${whose}: ${result.fault}`);
        else
            inspect(placement.sha256, result.content);
    }
    if (next !== pack.bytes)
        account.fault(`${key}: its slices end at ${next} of ${pack.bytes} bytes`);
}
function claimAt(placement) {
    return { key: `sha256/${placement.sha256}`, sha256: placement.sha256, bytes: placement.bytes };
}
