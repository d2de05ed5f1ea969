// Deletes a run from the store: its folder, and of what it claims only that which no other run claims. While
// another run is unfinished, or another run's claims cannot all be read, its objects stay: that run may rest on
// them without a word in the store yet, and `store gc` takes what is left. A removal that was cut short is repeated.
import { claimedKeys, runsInStore } from './run-claims.js';
import { manifestKey, runPrefix } from './shard-name.js';
export async function removeRun(store, run, options) {
    const mine = new Set();
    // What cannot be read of this run is left for gc; what can be is removed.
    for await (const claimed of claimedKeys(store, run, options.roots ?? null))
        if ('key' in claimed)
            mine.add(claimed.key);
    const before = mine.size;
    let kept = options.othersUnfinished ? 'another run is unfinished' : null;
    if (kept === null)
        kept = await withoutOthers(store, run, mine);
    const objects = kept === null ? [...mine] : [];
    for (const key of objects)
        await store.delete(key);
    let files = 0;
    for (const key of await filesOf(store, run)) {
        await store.delete(key);
        files++;
    }
    return { files, objects: objects.length, shared: kept === null ? before - mine.size : 0, kept };
}
/** Takes from `mine` what other runs claim. Says why if not all of their claims can be known. */
async function withoutOthers(store, run, mine) {
    for (const other of await runsInStore(store)) {
        if (other === run)
            continue;
        for await (const claimed of claimedKeys(store, other, null)) {
            if ('unknown' in claimed)
                return unknownOf(other, claimed);
            mine.delete(claimed.key);
        }
    }
    return null;
}
function unknownOf(run, claimed) {
    return `the claims of run ${run} are not all known (${claimed.unknown})`;
}
/** The manifest last: by it a removal that was cut short finds the rest. */
async function filesOf(store, run) {
    const keys = [];
    for await (const { key } of store.list(runPrefix(run)))
        keys.push(key);
    const last = manifestKey(run);
    return [...keys.filter((key) => key !== last), ...keys.filter((key) => key === last)];
}
