// `farm results RUN`: closed groups in the order in which they closed, with the same cursors for ever, from the store
// as far as shards are committed and from Redis beyond; `--follow` waits for more.

import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.ts';
import { EXIT, inputError, missingError } from '../../shared/errors.ts';
import { connectRedis } from '../../shared/redis/connect.ts';
import type { ResultLine } from '../../shared/store/results.ts';
import { openResults } from '../results-reader.ts';

const FOLLOW_MS = 200;

export async function results(args: { run: string; after: string | null; follow: boolean }): Promise<number> {
  const config = readConfig();
  const { redis } = await connectRedis(config);
  try {
    const reader = await openResults(config, redis, args.run);
    let seq = 0;
    if (args.after !== null) {
      const at = await reader.seqOf(args.after);
      if ('fault' in at)
        throw inputError(at.code, `--after: the cursor ${JSON.stringify(args.after)} ${at.fault}`, at.hint);
      seq = at.seq;
    }
    let last: ResultLine | null = null;
    for (;;) {
      const over = await reader.isOver();
      if (last !== null && !(await reader.stands(last)))
        throw missingError(
          'cursor_lost',
          'Redis came back with less than it had acknowledged: the last groups that were printed are done anew',
          'go on after an earlier cursor',
        );
      for await (const row of reader.after(seq)) {
        if (!process.stdout.write(`${row.line}\n`))
          await new Promise<void>((resolve) => process.stdout.once('drain', () => resolve()));
        seq = row.seq;
        last = row;
      }
      if (!args.follow || over) return EXIT.ok;
      await wait(FOLLOW_MS);
    }
  } finally {
    redis.disconnect();
  }
}
