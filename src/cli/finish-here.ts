// Brings a cancelled run to its end in this process, if nobody else does: takes the driver's lease when it is free, closes
// what is open, and collects.

import { Driver } from '../producer/driver.ts';
import type { Config } from '../shared/config.ts';
import { Fleet } from '../shared/fleet/fleet.ts';
import type { RunLedger } from '../shared/ledger/run-ledger.ts';
import type { Log } from '../shared/log.ts';
import { PlanIndex } from '../shared/plan/plan-index.ts';
import { isKnownDead } from '../shared/process-identity.ts';
import { MemberQueue } from '../shared/queue.ts';
import { privateRealm } from '../shared/realm.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { RedisPlace } from '../shared/redis/connect.ts';
import { collectRun } from '../workers/collect/collect-run.ts';
import { Runs } from '../workers/runs.ts';

export interface FinishContext {
  config: Config;
  redis: Redis;
  place: RedisPlace;
  ledger: RunLedger;
  owner: string;
  log: Log;
}

/** Does nothing while another process drives the run. */
export async function finishHere(context: FinishContext): Promise<void> {
  const { config, redis, place, ledger, owner, log } = context;
  const first = await ledger.drive(owner);
  const driven = 'epoch' in first ? first : isKnownDead(first.heldBy) ? await ledger.drive(owner, first.heldBy) : first;
  if (!('epoch' in driven)) return;
  const known = await new Runs(redis, config, log, { anyKey: true }).get(ledger.run);
  if ('refused' in known) return;
  const realm = privateRealm(ledger.run);
  const queue = new MemberQueue(place, realm);
  const fleet = new Fleet(redis, place, realm);
  try {
    const plan = await PlanIndex.open(known.store, known.settings.plan);
    const driver = new Driver(ledger.run, driven.epoch, {
      redis,
      queue,
      fleet,
      settings: known.settings,
      groups: known.settings.plan.groups,
      groupSize: known.settings.plan.groupSize,
      plan,
      owner,
      log,
      // The driver waits for the manifest, which is ours to write once all groups are closed.
      onTick: (tick) => {
        if (tick.closed >= known.settings.plan.groups + tick.spares)
          void collectRun(ledger, known, log).catch(() => {});
      },
    });
    await driver.drive();
    await queue.obliterate();
  } finally {
    await queue.close();
    fleet.close();
    await ledger.undrive(owner);
  }
}
