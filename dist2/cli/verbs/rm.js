// `farm rm RUN`: deletes a run's records and what only it claims, in the store and in Redis.
import { readConfig } from '../../shared/config.js';
import { EXIT, inputError } from '../../shared/errors.js';
import { forgetRun, knownRuns } from '../../shared/ledger/known-runs.js';
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { readSettings } from '../../shared/ledger/run-settings.js';
import { isKnownDead, processIdentity } from '../../shared/process-identity.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { removeRun } from '../../shared/store/run-removal.js';
import { locate } from './verify-run.js';
/** A lease is good for ten seconds, and a large run takes longer to remove. */
const HOLD_MS = 2_000;
export async function rm(args) {
    const { store, run } = await locate(args.run);
    const { redis } = await connectRedis(readConfig());
    try {
        const ledger = new RunLedger(redis, run);
        const fields = await ledger.fields();
        // Taken, and not only looked at: while its records go nobody else begins to drive it.
        if (fields.state !== undefined && !(await held(ledger, fields.driver ?? '')))
            throw inputError('run_at_work', `run ${run} is at work`, `./farm cancel ${run} first`);
        const holding = setInterval(() => void held(ledger, '').catch(() => { }), HOLD_MS);
        try {
            await remove(redis, store, run, fields.settings);
        }
        finally {
            clearInterval(holding);
            await ledger.undrive(processIdentity()).catch(() => { });
        }
        return EXIT.ok;
    }
    finally {
        await store.close();
        redis.disconnect();
    }
}
/** Whether the run's lease is ours: whether another one's still holds is for the ledger to say, by its own clock. */
async function held(ledger, driver) {
    return 'epoch' in (await ledger.drive(processIdentity(), isKnownDead(driver) ? driver : ''));
}
async function remove(redis, store, run, settings) {
    const others = (await knownRuns(redis, null)).filter((other) => other !== run);
    const unfinished = await Promise.all(others.map(async (other) => (await new RunLedger(redis, other).field('manifest')) === null));
    const removal = await removeRun(store, run, {
        othersUnfinished: unfinished.includes(true),
        roots: rootsOf(settings),
    });
    await forgetRun(redis, run);
    process.stderr.write(`farm: removed ${run}: ${removal.files} files, ${removal.objects} objects${removal.kept === null ? '' : `; objects stay: ${removal.kept}`}\n`);
}
/** What an unfinished run claims beside its shards. */
function rootsOf(text) {
    if (text === undefined)
        return null;
    const { plan, documentSha256 } = readSettings(text);
    return { plan, inputs: [{ key: `sha256/${documentSha256}`, sha256: documentSha256, bytes: 0 }] };
}
