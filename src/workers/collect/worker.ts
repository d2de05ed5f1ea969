// The collect worker: for each run of its realm, closed groups become shards in the store, and a run whose groups are
// all closed gets its manifest. Two of them, or one after a kill, write the same bytes (collector.ts).

import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../shared/errors.ts';
import { knownRuns } from '../../shared/ledger/known-runs.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { announce } from '../../shared/presence.ts';
import type { Role, RoleContext } from '../role.ts';
import { Runs } from '../runs.ts';
import { collectRun } from './collect-run.ts';

const ROUND_MS = 250;
/** After a failure (a store that is full or away) the run rests for a while; its groups stay in the stream. */
const REST_MS = 2_000;

/** `only`: the one run of a private realm. */
export async function startCollectWorker(context: RoleContext, only: string | null): Promise<Role> {
  const { redis, log, realm, worker } = context;
  const runs = new Runs(redis, context.config, log, { anyKey: true });
  const presence = await announce(redis, { role: 'collect', realm, worker, slots: {} });
  const resting = new Map<string, number>();
  let going = true;

  async function round(): Promise<void> {
    for (const run of only === null ? await knownRuns(redis, realm) : [only]) {
      if ((resting.get(run) ?? 0) > performance.now()) continue;
      const ledger = new RunLedger(redis, run);
      try {
        const known = await runs.get(run);
        if ('refused' in known) continue;
        await collectRun(ledger, known, log);
      } catch (error) {
        resting.set(run, performance.now() + REST_MS);
        log.error({ run, error: messageOf(error) }, 'could not collect');
        await ledger.setState('paused', messageOf(error)).catch(() => {});
      }
    }
  }

  const loop = (async () => {
    while (going) {
      await round().catch((error: unknown) => log.error({ error: messageOf(error) }, 'collect'));
      await wait(ROUND_MS);
    }
  })();
  const end = async (): Promise<void> => {
    going = false;
    await loop;
    // What closed while we were asked to go is still ours to write.
    await round().catch(() => {});
    await presence.stop();
  };
  return { drain: end, stop: end };
}
