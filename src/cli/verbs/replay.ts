// `farm replay FILE…|RUN`: plays recorded episodes again and compares everything that they say; of a run, every
// completed member's trajectory, as its group record claims it.

import pLimit from 'p-limit';
import { readConfig } from '../../shared/config.ts';
import { EXIT } from '../../shared/errors.ts';
import { parseTrajectory, type Trajectory } from '../../shared/trajectory.ts';
import { type ReplayReport, replayTrajectory } from '../../workers/rollout/replay.ts';
import { EpisodeBoxes } from '../episode-box.ts';
import { openRecording, type RecordedEpisode, type Recording } from '../recorded-episodes.ts';
import { rolloutSlots } from '../roles.ts';

interface Item {
  name: string;
  load: () => Promise<Trajectory>;
  expected: { envId?: string; steps?: number; totalReward?: number };
}

export async function replay(args: { targets: string[]; json: boolean }): Promise<number> {
  const recordings: Recording[] = [];
  try {
    const items: Item[] = [];
    for (const target of args.targets) {
      const recording = await openRecording(target);
      recordings.push(recording);
      for await (const episode of recording.episodes) items.push(await itemOf(recording, episode));
    }
    return await replayAll(items, args.json);
  } finally {
    for (const recording of recordings) await recording.close();
  }
}

async function replayAll(items: readonly Item[], json: boolean): Promise<number> {
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
  if (json) process.stdout.write(`${JSON.stringify({ ok, steps, episodes: items.length, mismatches })}\n`);
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

async function itemOf({ run }: Recording, { name, load, of }: RecordedEpisode): Promise<Item> {
  if (of === null) {
    // A file that is no trajectory is refused before anything is played.
    const trajectory = parseTrajectory(await load(), name);
    return { name, load: async () => trajectory, expected: {} };
  }
  const { components, certificate, steps } = of.member;
  return {
    name,
    load: async () => parseTrajectory(await load(), `${run} ${name}`),
    expected: {
      envId: certificate.env,
      steps,
      ...(components.env === undefined ? {} : { totalReward: components.env }),
    },
  };
}
