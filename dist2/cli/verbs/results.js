// `farm results RUN`: closed groups in the order in which they closed, with the same cursors for ever, from the store
// as far as shards are committed and from Redis beyond; `--follow` waits for more.
import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.js';
import { EXIT, inputError } from '../../shared/errors.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { openResults } from '../results-reader.js';
const FOLLOW_MS = 200;
export async function results(args) {
    const config = readConfig();
    const { redis } = await connectRedis(config);
    try {
        const reader = await openResults(config, redis, args.run);
        let seq = 0;
        if (args.after !== null) {
            const at = await reader.seqOf(args.after);
            if ('fault' in at)
                throw inputError('cursor', `--after: the cursor ${JSON.stringify(args.after)} ${at.fault}`, 'take the "cursor" of a record of this run');
            seq = at.seq;
        }
        for (;;) {
            const over = await reader.isOver();
            for await (const row of reader.after(seq)) {
                if (!process.stdout.write(`${row.line}\n`))
                    await new Promise((resolve) => process.stdout.once('drain', () => resolve()));
                seq = row.seq;
            }
            if (!args.follow || over)
                return EXIT.ok;
            await wait(FOLLOW_MS);
        }
    }
    finally {
        redis.disconnect();
    }
}
