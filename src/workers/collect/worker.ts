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

/** Between two looks at a run; one at work is looked at in between, so that its end and a full shard are not waited for. */
const ROUND_MS = 250;
const GLANCE_MS = 50;
/** After a failure (a store that is full or away) the run rests for a while; its groups stay in the stream. */
const REST_MS = 2_000;

/** `only`: the one run of a private realm. */
export async function startCollectWorker(context: RoleContext, only: string | null): Promise<Role> {
  const { redis, log, realm, worker } = context;
  const runs = new Runs(redis, context.config, log, { anyKey: true });
  const presence = await announce(redis, { role: 'collect', realm, worker, slots: {} });
  const resting = new Map<string, number>();
  const lookedAt = new Map<string, number>();
  let going = true;

  /** How long the next one can wait. */
  async function round(all = false): Promise<number> {
    let rest = ROUND_MS;
    for (const run of only === null ? await knownRuns(redis, realm) : [only]) {
      if ((resting.get(run) ?? 0) > performance.now()) continue;
      const ledger = new RunLedger(redis, run);
      const glance = !all && performance.now() - (lookedAt.get(run) ?? Number.NEGATIVE_INFINITY) < ROUND_MS;
      if (!glance) lookedAt.set(run, performance.now());
      try {
        const known = await runs.get(run);
        if ('refused' in known) continue;
        if ((await collectRun(ledger, known, log, { glance })) === 'open') rest = GLANCE_MS;
        else resting.set(run, performance.now() + ROUND_MS);
      } catch (error) {
        resting.set(run, performance.now() + REST_MS);
        log.error({ run, error: messageOf(error) }, 'could not collect');
        await ledger.setState('paused', messageOf(error)).catch(() => {});
      }
    }
    return rest;
  }

  const loop = (async () => {
    while (going) {
      const rest = await round().catch((error: unknown) => {
        log.error({ error: messageOf(error) }, 'collect');
        return ROUND_MS;
      });
      await wait(rest);
    }
  })();
  const end = async (): Promise<void> => {
    going = false;
    await loop;
    // What closed while we were asked to go is still ours to write.
    await round(true).catch(() => {});
    await presence.stop();
  };
  return { drain: end, stop: end };
}
