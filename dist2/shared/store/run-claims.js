// Every object that a run claims, by key: its inputs, its plan and all that hangs on it, and what its shards'
// indexes place. For removal and for collecting garbage, hence strict: where something cannot be read, it says so,
// because a claim that is not seen is an object wrongly deleted.
import { objectKey, packKey } from '../claim.js';
import { walkPlan } from '../plan/walk.js';
import { gunzipBounded } from './content.js';
import { parseManifest } from './manifest.js';
import { INDEX_MAX_BYTES, parseShardIndex } from './shard-index.js';
import { manifestKey, runPrefix } from './shard-name.js';
/** Yields a key once or more often. `roots` stand in where there is no manifest. */
export async function* claimedKeys(store, run, roots) {
    const bytes = await store.get(manifestKey(run));
    const parsed = bytes === null ? null : parseManifest(bytes);
    if (parsed && 'fault' in parsed)
        yield { unknown: `${manifestKey(run)}: ${parsed.fault}` };
    const known = parsed && 'manifest' in parsed ? parsed.manifest : roots;
    if (known === null)
        yield { unknown: `${manifestKey(run)}: is not there, so the run's plan is not known` };
    else {
        for (const claim of known.inputs)
            yield { key: objectKey(claim.sha256) };
        yield* planKeys(store, known.plan);
    }
    for await (const { key } of store.list(runPrefix(run)))
        if (key.endsWith('.index.json.gz'))
            yield* indexKeys(store, key);
}
async function* planKeys(store, plan) {
    yield { key: objectKey(plan.index.sha256) };
    let groups = 0;
    for await (const step of walkPlan(store, plan)) {
        if (step.kind === 'fault') {
            yield { unknown: step.fault };
            continue;
        }
        groups++;
        yield { key: packKey(step.pack) };
        for (const claim of step.claims)
            yield { key: objectKey(claim.sha256) };
    }
    if (groups !== plan.groups)
        yield { unknown: `plan index ${plan.index.key}: ${groups} of ${plan.groups} groups could be read` };
}
async function* indexKeys(store, key) {
    const bytes = await store.get(key);
    const plain = bytes === null ? { fault: 'is not there' } : await gunzipBounded(bytes, INDEX_MAX_BYTES);
    const parsed = 'fault' in plain ? plain : parseShardIndex(plain.content.toString());
    if ('fault' in parsed) {
        yield { unknown: `${key}: ${parsed.fault}` };
        return;
    }
    for (const pack of parsed.index.packs)
        yield { key: packKey(pack.sha256) };
    for (const placement of parsed.index.claims)
        if (!('pack' in placement))
            yield { key: objectKey(placement.sha256) };
}
/** Every run that has anything in the store, in order. */
export async function runsInStore(store) {
    const runs = new Set();
    for await (const { key } of store.list('runs/'))
        runs.add(key.split('/')[1] ?? '');
    return [...runs];
}
