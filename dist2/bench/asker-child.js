// One process of the fleet under measure: joins the others on the same Redis and asks its share of the queries when told.
import { z } from 'zod';
import { readConfig } from '../shared/config.js';
import { mapOf } from '../shared/json/value.js';
import { openLog } from '../shared/log.js';
import { openRedis } from '../shared/redis/connect.js';
import { FleetAsker } from '../workers/verify/fleet/asker.js';
const setSchema = z.strictObject({ socket: z.string(), baseUrl: z.string(), concurrency: z.int().positive() });
const goSchema = z.strictObject({ epoch: z.string(), ids: z.array(z.int()) });
const setting = setSchema.parse(JSON.parse(process.argv[2] ?? ''));
const place = { options: { path: setting.socket }, address: 'bench', embedded: true };
const redis = openRedis(place);
const asker = new FleetAsker({
    redis,
    place,
    // An upstream of its own for each number of calls at once: the strictest of those that ask one holds for all.
    upstream: { baseUrl: setting.baseUrl, platformId: BigInt(setting.concurrency), apiKey: 'at_bench_0123456789' },
    limits: { concurrency: setting.concurrency },
    log: openLog(readConfig(), 'bench', 'warn'),
});
process.on('message', (message) => {
    const { epoch, ids } = goSchema.parse(message);
    const queries = ids.map((id) => ({
        query: `bench ${id}`,
        facts: mapOf({ id: BigInt(id) }),
        relations: null,
        predictions: null,
    }));
    const cpu = process.cpuUsage();
    const began = performance.now();
    void asker.ask(queries, { epoch, cache: true, deadlineMs: 60_000 }).then((answers) => {
        const used = process.cpuUsage(cpu);
        process.send?.({
            ms: performance.now() - began,
            cpuMs: (used.user + used.system) / 1000,
            verdicts: answers.filter((a) => a.kind === 'verdict').length,
        });
    });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
