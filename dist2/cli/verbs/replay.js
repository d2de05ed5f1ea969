// `farm replay FILE…|RUN`: plays recorded episodes again and compares everything that they say; of a run, every
// completed member's trajectory, as its group record claims it.
import { existsSync } from 'node:fs';
import pLimit from 'p-limit';
import { readConfig } from '../../shared/config.js';
import { EXIT, inputError } from '../../shared/errors.js';
import { groupRecordSchema } from '../../shared/group.js';
import { readContent } from '../../shared/store/content.js';
import { RUN_ID } from '../../shared/store/open.js';
import { resultsFromStore } from '../../shared/store/results.js';
import { runPlacements } from '../../shared/store/shard-places.js';
import { parseTrajectory } from '../../shared/trajectory.js';
import { replayTrajectory } from '../../workers/rollout/replay.js';
import { EpisodeBoxes } from '../episode-box.js';
import { rolloutSlots } from '../roles.js';
import { readTrajectory } from './show.js';
import { locate } from './verify-run.js';
export async function replay(args) {
    const items = [];
    for (const target of args.targets)
        items.push(...(await itemsOf(target)));
    const limit = pLimit(rolloutSlots());
    const controller = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => controller.abort(new Error(`interrupted by ${signal}`)));
    const reports = await Promise.all(items.map((item) => limit(() => replayOne(item, controller.signal))));
    if (controller.signal.aborted)
        return EXIT.interrupted;
    const ok = reports.every((r) => r.ok);
    const mismatches = reports.flatMap((r, i) => r.mismatches.map((m) => (items.length === 1 ? m : `${items[i]?.name}: ${m}`)));
    const steps = reports.reduce((n, r) => n + r.steps, 0);
    if (args.json)
        process.stdout.write(`${JSON.stringify({ ok, steps, episodes: items.length, mismatches })}\n`);
    else {
        process.stdout.write(ok
            ? `replay: reproduced OK (${items.length} episodes, ${steps} steps)\n`
            : `replay: MISMATCH (${mismatches.length} issue(s) over ${items.length} episodes, ${steps} steps)\n`);
        for (const mismatch of mismatches)
            process.stdout.write(`  - ${mismatch}\n`);
        for (const [i, r] of reports.entries())
            if (r.unrecorded.length > 0)
                process.stderr.write(`${items[i]?.name}: unrecorded: ${r.unrecorded.join(', ')}\n`);
    }
    return ok ? EXIT.ok : EXIT.unsound;
}
async function replayOne(item, signal) {
    const trajectory = await item.load();
    const boxes = new EpisodeBoxes(readConfig(), 'docker');
    try {
        return await replayTrajectory(trajectory, (name, config) => boxes.environment(name, config, signal), {
            expected: item.expected,
        });
    }
    catch (error) {
        if (signal.aborted)
            return { ok: false, steps: 0, mismatches: [], unrecorded: [] };
        throw error;
    }
    finally {
        await boxes.close();
    }
}
async function itemsOf(target) {
    const folder = existsSync(`${target}/manifest.json`) || existsSync(`${target}/shards`);
    if (existsSync(target) && !folder) {
        const trajectory = readTrajectory(target);
        return [{ name: target, load: async () => trajectory, expected: {} }];
    }
    if (!folder && !RUN_ID.test(target))
        throw inputError('unknown_target', `${target} is neither a file nor a run`);
    const { store, run } = await locate(target);
    const items = [];
    const places = await runPlacements(store, run);
    for await (const { line } of resultsFromStore(store, run, 0)) {
        const record = groupRecordSchema.parse(JSON.parse(line));
        for (const member of record.members) {
            if (member.status !== 'completed')
                continue;
            const { trajectory: claim, components, certificate, steps } = member;
            const name = `${record.task_id}/${member.member}`;
            items.push({
                name,
                load: async () => parseTrajectory(await readContent(store, claim, places.get(claim.sha256)), `${run} ${name}`),
                expected: {
                    envId: certificate.env,
                    steps,
                    ...(components.env === undefined ? {} : { totalReward: components.env }),
                },
            });
        }
    }
    return items;
}
