// One round for one run: shards of what is closed, as many as are due; the manifest when nothing more can close.
import { objectKey, sha256 } from '../../shared/claim.js';
import { FarmError } from '../../shared/errors.js';
import { parseJson } from '../../shared/json/json.js';
import { isMap } from '../../shared/json/value.js';
import { reconcile } from '../../shared/ledger/reconcile.js';
import { RedisChanged } from '../../shared/ledger/run-ledger.js';
import { surveyShards } from '../../shared/store/shard-survey.js';
import { collectShard } from './collector.js';
import { finishRun } from './finish.js';
/** A shard holds at most this many members, so that its entries and its pack stay a few MB. */
const MOST_MEMBERS = 2_048;
/** While the run is at work, a shard waits for this many groups: small shards cost requests for ever. */
const LEAST_GROUPS = 64;
export async function collectRun(ledger, known, log) {
    const fields = await ledger.fields();
    const groups = Number(fields.groups);
    if (fields.state === undefined)
        return;
    if (fields.manifest !== undefined) {
        // Somebody died between the manifest and this.
        if (fields.state === 'running' || fields.state === 'paused')
            await ledger.setState('done');
        return;
    }
    const closed = Number(fields.closed);
    const over = closed >= groups;
    // A run that rests (stopped, paused) keeps its closed groups in the stream until it goes on or a shard is full.
    const identity = { run: ledger.run, incarnation: known.settings.incarnation, convention: known.settings.convention };
    const most = Math.max(1, Math.floor(MOST_MEMBERS / Number(fields.size)));
    const bounds = { most, least: Math.min(LEAST_GROUPS, most), final: over };
    for (;;) {
        const collected = await collectShard(known.store, ledger, identity, bounds).catch((error) => error);
        if (!isCollected(collected)) {
            if (await followsStore(ledger, known, log, collected))
                return;
            throw collected;
        }
        if (collected.kind === 'idle')
            break;
        log.info({ run: ledger.run, shard: collected.shard.number, records: collected.shard.records, ledger: collected.kind }, 'shard');
    }
    if (!over)
        return;
    const document = await readDocument(known);
    await finishRun(known.store, {
        identity,
        state: fields.state === 'cancelled' ? 'cancelled' : 'done',
        spec: document.spec,
        plan: known.settings.plan,
        inputs: [document.claim],
        link: (await ledger.field('link')) ?? null,
    });
    await ledger.setField('manifest', '1');
    if (fields.state !== 'cancelled')
        await ledger.setState('done');
}
function isCollected(answer) {
    return typeof answer === 'object' && answer !== null && 'kind' in answer;
}
/** A Redis that lost writes while the run goes on: groups in committed shards win, what closed beyond them is begun anew. */
async function followsStore(ledger, known, log, error) {
    if (error instanceof RedisChanged)
        return await reconcile(ledger, known.store, known.settings.incarnation, log);
    if (!(error instanceof FarmError) || error.code !== 'ledger_behind_store')
        return false;
    const { shards } = await surveyShards(known.store, ledger.run);
    if (!(await ledger.adopt(shards)))
        return false;
    log.warn({ run: ledger.run, shards: shards.length, error: error.message }, 'Redis has lost writes: the ledger follows the store');
    return true;
}
async function readDocument({ settings, store, }) {
    const bytes = await store.get(objectKey(settings.documentSha256));
    if (bytes === null || sha256(bytes) !== settings.documentSha256)
        throw new Error(`the resolved spec ${settings.documentSha256} is not in ${store.address}`);
    const spec = parseJson(bytes.toString('utf8'));
    if (!isMap(spec))
        throw new Error('the resolved spec is not an object');
    return {
        spec,
        claim: { key: `sha256/${settings.documentSha256}`, sha256: settings.documentSha256, bytes: bytes.length },
    };
}
