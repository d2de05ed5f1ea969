// Writes a plan into the store: claimed objects, then packs of documents, then the index that finds them. What is
// there already is not written again, so a resumed or repeated run costs reads. Puts run a few at a time, and no more
// than a pack and those puts is held in memory, beside the index.
import { claimOf, objectKey, packKey, sha256 } from '../shared/claim.js';
import { encodeEntry } from '../shared/plan/plan.js';
/** Large enough that a million groups need few packs, small enough to be held a few times over. */
const PACK_BYTES = 8 * 1024 * 1024;
const PARALLEL_PUTS = 8;
/** Objects in flight together, in bytes; one larger than this goes alone. */
const FLIGHT_BYTES = 64 * 1024 * 1024;
export async function storePlan(store, groups, groupSize) {
    const puts = new Puts(store);
    const written = new Set();
    const index = [];
    let pack = [];
    let packBytes = 0;
    let count = 0;
    const closePack = async () => {
        if (pack.length === 0)
            return;
        const content = Buffer.concat(pack.map((part) => part.bytes));
        const name = sha256(content);
        let offset = 0;
        const lines = pack.map((part) => {
            const place = { pack: name, offset, bytes: part.bytes.length, sha256: part.sha256 };
            offset += part.bytes.length;
            return `${encodeEntry({ taskId: part.taskId, place, lane: part.lane })}\n`;
        });
        index.push(Buffer.from(lines.join('')));
        pack = [];
        packBytes = 0;
        await puts.add(packKey(name), content);
    };
    try {
        for (const group of groups) {
            for (const { claim, content } of group.objects) {
                if (written.has(claim.sha256))
                    continue;
                written.add(claim.sha256);
                await puts.add(objectKey(claim.sha256), content);
            }
            if (packBytes + group.document.length > PACK_BYTES)
                await closePack();
            pack.push({ taskId: group.taskId, lane: group.lane, bytes: group.document, sha256: sha256(group.document) });
            packBytes += group.document.length;
            count++;
        }
        await closePack();
    }
    finally {
        // Also after a failure: nothing may be writing when this returns.
        await puts.settle();
    }
    puts.rethrow();
    const content = Buffer.concat(index);
    const claim = claimOf(content);
    await putOnce(store, objectKey(claim.sha256), content);
    return { index: claim, groups: count, groupSize };
}
/** A few puts at a time; the first failure stops further ones. */
class Puts {
    store;
    flying = new Set();
    bytes = 0;
    failure = null;
    constructor(store) {
        this.store = store;
    }
    /** Waits until there is room, then starts. */
    async add(key, content) {
        while (this.flying.size > 0 && (this.flying.size >= PARALLEL_PUTS || this.bytes + content.length > FLIGHT_BYTES))
            await Promise.race(this.flying);
        this.rethrow();
        this.bytes += content.length;
        const flight = putOnce(this.store, key, content)
            .catch((error) => {
            this.failure ??= { error };
        })
            .finally(() => {
            this.bytes -= content.length;
            this.flying.delete(flight);
        });
        this.flying.add(flight);
    }
    async settle() {
        await Promise.all(this.flying);
    }
    rethrow() {
        if (this.failure !== null)
            throw this.failure.error;
    }
}
// Keys name their content, so the same size is the same object, or a damaged one that reading will name.
async function putOnce(store, key, content) {
    if ((await store.head(key)) !== content.length)
        await store.put(key, content);
}
