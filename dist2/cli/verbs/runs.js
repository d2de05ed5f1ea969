// `farm runs`: what Redis knows, and what only the store knows any more.
import { readConfig } from '../../shared/config.js';
import { EXIT } from '../../shared/errors.js';
import { knownRuns } from '../../shared/ledger/known-runs.js';
import { readStatus } from '../../shared/ledger/run-status.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { openStoreAddress } from '../../shared/store/open.js';
import { runsInStore } from '../../shared/store/run-claims.js';
import { finishedStatus } from '../stored-run.js';
import { line } from './status.js';
export async function runs(args) {
    const config = readConfig();
    const { redis } = await connectRedis(config);
    const store = await openStoreAddress(config.store);
    try {
        const names = new Set([...(await knownRuns(redis, null)), ...(await runsInStore(store))]);
        const rows = [];
        for (const run of [...names].sort())
            rows.push((await readStatus(redis, run)) ?? (await finishedStatus(config, run)));
        const found = rows.filter((row) => row !== null);
        if (args.json)
            process.stdout.write(`${JSON.stringify(found)}\n`);
        else
            for (const row of found)
                process.stdout.write(`${line(row)}\n`);
        return EXIT.ok;
    }
    finally {
        await store.close();
        redis.disconnect();
    }
}
