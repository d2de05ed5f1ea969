// One reader over the two places where closed groups lie: committed shards in the store, the rest in the ledger's
// stream. A shard that is committed while we read moves groups from one to the other; the sequence number does not change.
import { parseCursor } from '../shared/group.js';
import { RunLedger } from '../shared/ledger/run-ledger.js';
import { readSettings } from '../shared/ledger/run-settings.js';
import { parseManifest } from '../shared/store/manifest.js';
import { openStoreAddress, RUN_ID } from '../shared/store/open.js';
import { resultsFromStore } from '../shared/store/results.js';
import { manifestKey } from '../shared/store/shard-name.js';
import { renderLine } from '../shared/store/shard-record.js';
import { unknownRun } from './stored-run.js';
const BATCH = 200;
export async function openResults(config, redis, run) {
    const ledger = new RunLedger(redis, run);
    const text = await ledger.field('settings');
    if (text === null)
        return await fromStoreAlone(await openStoreAddress(config.store), run);
    const settings = readSettings(text);
    const store = await openStoreAddress(settings.store);
    const identity = { run, incarnation: settings.incarnation, convention: settings.convention };
    const figure = async (name) => Number((await ledger.field(name)) ?? 0);
    async function* after(start) {
        let seq = start;
        if (seq < (await figure('committed'))) {
            for await (const row of resultsFromStore(store, run, seq)) {
                yield row;
                seq = row.seq;
            }
        }
        for (;;) {
            const entries = await ledger.entries(seq + 1, seq + BATCH);
            if (entries.length > 0 && entries[0]?.seq === seq + 1) {
                for (const entry of entries) {
                    yield { seq: entry.seq, line: renderLine(identity, entry.closed) };
                    seq = entry.seq;
                }
            }
            else if (seq < (await figure('committed'))) {
                // Committed to the store while we read.
                for await (const row of resultsFromStore(store, run, seq)) {
                    yield row;
                    seq = row.seq;
                }
            }
            else
                return;
        }
    }
    return {
        after,
        isOver: async () => {
            const fields = await ledger.fields();
            return (fields.manifest !== undefined || Number(fields.closed) >= Number(fields.groups) || fields.state === 'stopped');
        },
        seqOf: async (cursor) => within(parseCursor(settings.incarnation, cursor), await figure('closed')),
    };
}
async function fromStoreAlone(store, run) {
    const bytes = RUN_ID.test(run) ? await store.get(manifestKey(run)) : null;
    if (bytes === null)
        throw unknownRun(run);
    const parsed = parseManifest(bytes);
    const manifest = 'fault' in parsed ? null : parsed.manifest;
    return {
        after: (seq) => resultsFromStore(store, run, seq),
        isOver: async () => true,
        seqOf: async (cursor) => within(manifest === null ? null : parseCursor(manifest.incarnation, cursor), manifest?.counts.groups ?? 0),
    };
}
function within(seq, last) {
    if (seq === null)
        return { fault: 'is not one of this run' };
    return seq > last ? { fault: `is of the future: ${last} groups are closed` } : { seq };
}
