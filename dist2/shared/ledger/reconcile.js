// After Redis came back as another server (restarted, restored, failed over): its ledger may lack what was acknowledged.
// Groups in committed shards win, so the store is asked whether it goes on where the ledger ends; what closed beyond the
// shards is begun anew. Driver and collector do this, whoever comes first; a second time changes nothing.
import { genesis } from '../store/shard-name.js';
import { shardsThatFit, surveyShards } from '../store/shard-survey.js';
/** False if Redis changed again meanwhile, or does not know the run: to be asked again. */
export async function reconcile(ledger, store, incarnation, log) {
    const { run } = ledger;
    const server = await ledger.server();
    const { state, shards = '0', committed = '0', link } = await ledger.fields();
    if (state === undefined)
        return false;
    const end = { incarnation, to: Number(committed), link: link || genesis(run, incarnation) };
    const behind = (await shardsThatFit(store, run, Number(shards), end)).length > 0;
    const adopted = behind && (await ledger.adopt((await surveyShards(store, run)).shards));
    const done = await ledger.reconciled(server);
    if (done && adopted)
        log.warn({ run, server }, 'Redis has lost writes: the ledger follows the store');
    else if (done)
        log.warn({ run, server }, 'Redis came back as another server; its ledger has all that the store has');
    return done;
}
