// Looks for runs of a realm that nobody drives, and drives them: so that a detached run has an owner, and one whose
// driver died goes on.

import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../shared/errors.ts';
import { Fleet } from '../shared/fleet/fleet.ts';
import { knownRuns } from '../shared/ledger/known-runs.ts';
import { LEDGER_VERSION } from '../shared/ledger/ledger-version.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import { readSettings } from '../shared/ledger/run-settings.ts';
import type { Log } from '../shared/log.ts';
import { PlanIndex } from '../shared/plan/plan-index.ts';
import { isKnownDead, processIdentity } from '../shared/process-identity.ts';
import { MemberQueue } from '../shared/queue.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { RedisPlace } from '../shared/redis/connect.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import { Driver } from './driver.ts';

const LOOK_MS = 1_000;

export interface AdopterOptions {
  redis: Redis;
  place: RedisPlace;
  realm: string;
  log: Log;
}

export class Adopter {
  private readonly options: AdopterOptions;
  private readonly driven = new Map<string, { driver: Driver; over: Promise<void> }>();
  private readonly queue: MemberQueue;
  private readonly fleet: Fleet;
  private readonly loop: Promise<void>;
  private going = true;

  constructor(options: AdopterOptions) {
    this.options = options;
    this.queue = new MemberQueue(options.place, options.realm);
    this.fleet = new Fleet(options.redis, options.place, options.realm);
    this.loop = this.look();
  }

  runs(): Promise<string[]> {
    return knownRuns(this.options.redis, this.options.realm);
  }

  /** Gives the leases back; the runs stay for the next driver. */
  async drain(): Promise<void> {
    this.going = false;
    await this.loop;
    for (const { driver } of this.driven.values()) driver.drain();
    await Promise.all([...this.driven.values()].map((d) => d.over));
    await this.queue.close();
    this.fleet.close();
  }

  private async look(): Promise<void> {
    while (this.going) {
      try {
        for (const run of await this.runs()) if (!this.driven.has(run)) await this.tryAdopt(run);
      } catch (error) {
        this.options.log.debug({ error: messageOf(error) }, 'could not look for runs');
      }
      await wait(LOOK_MS);
    }
  }

  /** One run whose store fails must not keep the others waiting. */
  private async tryAdopt(run: string): Promise<void> {
    try {
      await this.adopt(run);
    } catch (error) {
      this.options.log.warn({ run, error: messageOf(error) }, 'could not drive');
      await new RunLedger(this.options.redis, run).undrive(processIdentity()).catch(() => {});
    }
  }

  private async adopt(run: string): Promise<void> {
    const { redis, log } = this.options;
    const ledger = new RunLedger(redis, run);
    const fields = await ledger.fields();
    if (
      fields.settings === undefined ||
      fields.version !== LEDGER_VERSION ||
      fields.manifest !== undefined ||
      fields.state === 'stopped' ||
      fields.state === 'done'
    )
      return;
    const owner = processIdentity();
    // Whether another one's lease still holds is for the ledger to say, by its own clock.
    const driven = await ledger.drive(
      owner,
      fields.driver !== undefined && isKnownDead(fields.driver) ? fields.driver : '',
    );
    if (!('epoch' in driven)) return;
    const settings = readSettings(fields.settings);
    const store = await openStoreAddress(settings.store);
    const plan = await PlanIndex.open(store, settings.plan);
    const driver = new Driver(run, driven.epoch, {
      redis,
      queue: this.queue,
      fleet: this.fleet,
      settings,
      groups: settings.plan.groups,
      groupSize: settings.plan.groupSize,
      plan,
      owner,
      log,
    });
    log.info({ run }, 'driving');
    const over = driver
      .drive()
      .then((end) => log.info({ run, ...end }, 'driven'))
      .finally(async () => {
        this.driven.delete(run);
        await ledger.undrive(owner).catch(() => {});
        await store.close();
      });
    this.driven.set(run, {
      driver,
      over: over.then(
        () => {},
        () => {},
      ),
    });
  }
}
