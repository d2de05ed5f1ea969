// Ends a run in the store: when its shards hold every planned group, the manifest is written, and only then are
// strays deleted (what a superseded collector left). Repeating it writes the same manifest. Refuses a run whose
// shards in the store are not all there: a manifest is a promise.
import { EXIT, FarmError } from '../../shared/errors.js';
import { buildManifest, shardEntry } from '../../shared/store/manifest.js';
import { genesis, manifestKey } from '../../shared/store/shard-name.js';
import { sumCounts } from '../../shared/store/shard-record.js';
import { surveyShards } from '../../shared/store/shard-survey.js';
/** Returns the counts of the whole run, as its shards have them. */
export async function finishRun(store, finished) {
    const { identity, state, spec, plan, inputs } = finished;
    const { run, incarnation, convention } = identity;
    const survey = await surveyShards(store, run, { link: finished.link });
    const link = survey.shards.at(-1)?.link ?? genesis(run, incarnation);
    const counts = sumCounts(survey.shards.map((s) => s.counts));
    if (survey.incarnation !== null && survey.incarnation !== incarnation)
        throw unfinished(run, `its shards are of the incarnation ${survey.incarnation}, the run is ${incarnation}`);
    if (finished.link !== null && finished.link !== link)
        throw unfinished(run, `its sound shards end at number ${survey.shards.length - 1}, and not where the ledger's do`);
    if (counts.groups !== plan.groups)
        throw unfinished(run, `its sound shards hold ${counts.groups} of ${plan.groups} groups`);
    const shards = survey.shards.map(shardEntry);
    await store.put(manifestKey(run), buildManifest({ run, incarnation, state, convention, counts, plan, inputs, spec, shards, link }));
    for (const key of survey.strays)
        await store.delete(key);
    return counts;
}
function unfinished(run, what) {
    return new FarmError('shards_incomplete', `run ${run}: no manifest was written: ${what}`, {
        exit: EXIT.unsound,
        hint: 'a shard in the store is gone or was changed; verify-run and the store’s backups know more',
    });
}
