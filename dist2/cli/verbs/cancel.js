// `farm cancel RUN`, from any shell: whoever drives the run closes its groups; if nobody does, this command does.
import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.js';
import { EXIT, missingError } from '../../shared/errors.js';
import { RunLedger } from '../../shared/ledger/run-ledger.js';
import { openLog } from '../../shared/log.js';
import { processIdentity } from '../../shared/process-identity.js';
import { connectRedis } from '../../shared/redis/connect.js';
import { finishHere } from '../finish-here.js';
import { finishedStatus, unknownRun } from '../stored-run.js';
const DEADLINE_MS = 60_000;
export async function cancel(args) {
    const config = readConfig();
    const { redis, place } = await connectRedis(config);
    try {
        const ledger = new RunLedger(redis, args.run);
        const before = await ledger.setState('cancelled', 'cancelled by command');
        if (before === 'unknown') {
            if ((await finishedStatus(config, args.run)) === null)
                throw unknownRun(args.run);
        }
        if (before === 'unknown' || before === 'done') {
            process.stderr.write(`farm: run ${args.run} is done; nothing to cancel\n`);
            return EXIT.ok;
        }
        const owner = processIdentity();
        let deadline = Date.now() + DEADLINE_MS;
        let closed = '';
        while ((await ledger.field('manifest')) === null) {
            const now = (await ledger.field('closed')) ?? '';
            // A long run takes its time to close; only standing still has a deadline.
            if (now !== closed)
                deadline = Date.now() + DEADLINE_MS;
            closed = now;
            if (Date.now() > deadline)
                throw missingError('cancel_slow', `run ${args.run} is cancelled, and its last groups are not written yet`, `./farm status ${args.run} tells how far it is`);
            await finishHere({ config, redis, place, ledger, owner, log: openLog(config, 'cancel') });
            await wait(100);
        }
        process.stderr.write(`farm: run ${args.run} cancelled\n`);
        return EXIT.ok;
    }
    finally {
        redis.disconnect();
    }
}
