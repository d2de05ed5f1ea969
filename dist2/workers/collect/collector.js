// One round of collecting: the ledger fixes a range of closed groups, their shard is built, put (packs, index,
// shard last), and committed. Whoever else does the same round writes the same bytes, so a kill at any point costs
// nothing but the work. Refuses to put a shard whose claims do not all lie in the store as they are claimed.
import pLimit from 'p-limit';
import { objectKey } from '../../shared/claim.js';
import { EXIT, FarmError } from '../../shared/errors.js';
import { checkObject } from '../../shared/store/content.js';
import { buildShard } from '../../shared/store/shard.js';
import { genesis } from '../../shared/store/shard-name.js';
import { shardsThatFit } from '../../shared/store/shard-survey.js';
const READS_AT_ONCE = 8;
export async function collectShard(store, ledger, identity, bounds) {
    const { run } = identity;
    const fixed = await ledger.fixShard(bounds);
    if (fixed === null)
        return { kind: 'idle' };
    const { number, from, to } = fixed;
    const entries = await ledger.entries(from, to);
    if (entries[0]?.seq !== from || entries.length !== to - from + 1)
        throw collectError(run, `shard ${number} is seq ${from} to ${to}, and the ledger gave ${entries.length} groups from ${entries[0]?.seq ?? 'none'}`);
    const previous = fixed.link || genesis(run, identity.incarnation);
    const built = await buildShard(identity, number, previous, entries);
    const place = { incarnation: identity.incarnation, to: from - 1, link: previous };
    const there = await shardsThatFit(store, run, number, place);
    const other = there.some((s) => s.sha256 === built.sha256) ? undefined : there[0];
    if (other !== undefined)
        return adopt(ledger, run, built, other);
    await confirmObjects(store, run, built);
    for (const file of [...built.packs, built.index, built.shard])
        await store.put(file.key, file.bytes);
    const { records, sha256, indexSha256, link } = built;
    const shard = { number, from, to, records, sha256, indexSha256, link };
    return { kind: await ledger.commit(shard), shard };
}
/** What lies in the store wins: the same groups from another encoder are committed as they are; other groups mean that Redis has lost writes. */
async function adopt(ledger, run, built, other) {
    const { number, from, to, records, sha256, indexSha256, link } = other;
    if (to !== built.to || other.groups.join() !== built.groups.join())
        throw new FarmError('ledger_behind_store', `run ${run}: the store has shard ${number} with seq ${from} to ${to}, and the ledger has other groups there`, { exit: EXIT.unsound, hint: 'Redis has lost writes: let the ledger take over the shards that the store has' });
    const shard = { number, from, to, records, sha256, indexSha256, link };
    return { kind: await ledger.commit(shard), shard };
}
async function confirmObjects(store, run, built) {
    const read = pLimit(READS_AT_ONCE);
    const faults = await Promise.all(built.objects.map((claim) => read(() => checkObject(store, objectKey(claim.sha256), claim.sha256, claim.bytes))));
    const fault = faults.find((f) => f !== null);
    if (fault !== undefined)
        throw collectError(run, `shard ${built.number} claims an object that is not sound: ${fault}`);
}
function collectError(run, what) {
    return new FarmError('collect_failed', `run ${run}: ${what}`, {
        exit: EXIT.unsound,
        hint: `the shard was not committed; put the object back, or remove the run with ./farm rm ${run}`,
    });
}
