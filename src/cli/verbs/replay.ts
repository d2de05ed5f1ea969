// `farm replay FILE…|RUN`: plays recorded episodes again and compares everything that they say; of a run, every
// completed member's trajectory, as its group record claims it.

import { existsSync } from 'node:fs';
import pLimit from 'p-limit';
import { readConfig } from '../../shared/config.ts';
import { EXIT, inputError } from '../../shared/errors.ts';
import { groupRecordSchema } from '../../shared/group.ts';
import { readContent } from '../../shared/store/content.ts';
import { RUN_ID } from '../../shared/store/open.ts';
import { resultsFromStore } from '../../shared/store/results.ts';
import { isS3Address } from '../../shared/store/s3-address.ts';
import { runPlacements } from '../../shared/store/shard-places.ts';
import { parseTrajectory, type Trajectory } from '../../shared/trajectory.ts';
import { type ReplayReport, replayTrajectory } from '../../workers/rollout/replay.ts';
import { EpisodeBoxes } from '../episode-box.ts';
import { rolloutSlots } from '../roles.ts';
import { readTrajectory } from './show.ts';
import { locate } from './verify-run.ts';

interface Item {
  name: string;
  load: () => Promise<Trajectory>;
  expected: { envId?: string; steps?: number; totalReward?: number };
}

export async function replay(args: { targets: string[]; json: boolean }): Promise<number> {
  const items: Item[] = [];
  for (const target of args.targets) items.push(...(await itemsOf(target)));
  const limit = pLimit(rolloutSlots());
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => controller.abort(new Error(`interrupted by ${signal}`)));
  const reports = await Promise.all(items.map((item) => limit(() => replayOne(item, controller.signal))));
  if (controller.signal.aborted) return EXIT.interrupted;
  const ok = reports.every((r) => r.ok);
  const mismatches = reports.flatMap((r, i) =>
    r.mismatches.map((m) => (items.length === 1 ? m : `${items[i]?.name}: ${m}`)),
  );
  const steps = reports.reduce((n, r) => n + r.steps, 0);
  if (args.json) process.stdout.write(`${JSON.stringify({ ok, steps, episodes: items.length, mismatches })}\n`);
  else {
    process.stdout.write(
      ok
        ? `replay: reproduced OK (${items.length} episodes, ${steps} steps)\n`
        : `replay: MISMATCH (${mismatches.length} issue(s) over ${items.length} episodes, ${steps} steps)\n`,
    );
    for (const mismatch of mismatches) process.stdout.write(`  - ${mismatch}\n`);
    for (const [i, r] of reports.entries())
      if (r.unrecorded.length > 0) process.stderr.write(`${items[i]?.name}: unrecorded: ${r.unrecorded.join(', ')}\n`);
  }
  return ok ? EXIT.ok : EXIT.unsound;
}

async function replayOne(item: Item, signal: AbortSignal): Promise<ReplayReport> {
  const trajectory = await item.load();
  const boxes = new EpisodeBoxes(readConfig(), 'docker');
  try {
    return await replayTrajectory(trajectory, (name, config) => boxes.environment(name, config, signal), {
      expected: item.expected,
    });
  } catch (error) {
    if (signal.aborted) return { ok: false, steps: 0, mismatches: [], unrecorded: [] };
    throw error;
  } finally {
    await boxes.close();
  }
}

async function itemsOf(target: string): Promise<Item[]> {
  const folder = existsSync(`${target}/manifest.json`) || existsSync(`${target}/shards`);
  if (existsSync(target) && !folder) {
    const trajectory = readTrajectory(target);
    return [{ name: target, load: async () => trajectory, expected: {} }];
  }
  if (!folder && !RUN_ID.test(target) && !isS3Address(target))
    throw inputError('unknown_target', `${target} is neither a file nor a run`);
  const { store, run } = await locate(target);
  const items: Item[] = [];
  const places = await runPlacements(store, run);
  for await (const { line } of resultsFromStore(store, run, 0)) {
    const record = groupRecordSchema.parse(JSON.parse(line));
    for (const member of record.members) {
      if (member.status !== 'completed') continue;
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
