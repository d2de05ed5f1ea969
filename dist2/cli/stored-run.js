// A run as the store knows it, for commands that are asked about one that Redis has forgotten.
import { inputError } from '../shared/errors.js';
import { parseManifest } from '../shared/store/manifest.js';
import { openStoreAddress, RUN_ID } from '../shared/store/open.js';
import { manifestKey } from '../shared/store/shard-name.js';
export function unknownRun(run) {
    return inputError('unknown_run', `there is no run ${JSON.stringify(run)} here`, './farm runs lists those that are known');
}
/** The status of a run that has a manifest in the default store, or null. */
export async function finishedStatus(config, run) {
    if (!RUN_ID.test(run))
        return null;
    const store = await openStoreAddress(config.store);
    try {
        const bytes = await store.get(manifestKey(run));
        if (bytes === null)
            return null;
        const parsed = parseManifest(bytes);
        if ('fault' in parsed)
            throw inputError('manifest_broken', `the manifest of ${run} ${parsed.fault}`, `./farm verify-run ${run} says more`);
        const { counts, plan, state } = parsed.manifest;
        return {
            run,
            state,
            groups: { planned: plan.groups, closed: counts.groups },
            members: {
                planned: plan.groups * plan.groupSize,
                accepted: counts.members,
                completed: counts.completed,
                no_result: counts.no_result,
                in_flight: 0,
                by_cause: counts.by_cause,
            },
            waiting_for: [],
            rate_per_s: null,
            eta_s: null,
        };
    }
    finally {
        await store.close();
    }
}
