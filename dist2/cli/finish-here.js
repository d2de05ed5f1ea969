// Brings a cancelled run to its end in this process, if nobody else does: takes the driver's lease when it is free, closes
// what is open, and collects.
import { Driver } from '../producer/driver.js';
import { Fleet } from '../shared/fleet/fleet.js';
import { PlanIndex } from '../shared/plan/plan-index.js';
import { isKnownDead } from '../shared/process-identity.js';
import { MemberQueue } from '../shared/queue.js';
import { privateRealm } from '../shared/realm.js';
import { collectRun } from '../workers/collect/collect-run.js';
import { Runs } from '../workers/runs.js';
/** Does nothing while another process drives the run. */
export async function finishHere(context) {
    const { config, redis, place, ledger, owner, log } = context;
    const first = await ledger.drive(owner);
    const driven = 'epoch' in first ? first : isKnownDead(first.heldBy) ? await ledger.drive(owner, first.heldBy) : first;
    if (!('epoch' in driven))
        return;
    const known = await new Runs(redis, config, { anyKey: true }).get(ledger.run);
    if ('refused' in known)
        return;
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
                if (tick.closed >= known.settings.plan.groups)
                    void collectRun(ledger, known, log).catch(() => { });
            },
        });
        await driver.drive();
        await queue.obliterate();
    }
    finally {
        await queue.close();
        fleet.close();
        await ledger.undrive(owner);
    }
}
