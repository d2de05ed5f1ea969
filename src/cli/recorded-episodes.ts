// Episodes as they were recorded, from where a person points: a trajectory file, or every completed member of a run,
// one group in memory at a time.

import { existsSync } from 'node:fs';
import { inputError } from '../shared/errors.ts';
import { type GroupRecord, groupRecordSchema } from '../shared/group.ts';
import type { Value } from '../shared/json/value.ts';
import { PlanIndex } from '../shared/plan/plan-index.ts';
import { readDocument, readHeld } from '../shared/plan/reader.ts';
import { readContent } from '../shared/store/content.ts';
import { RUN_ID } from '../shared/store/open.ts';
import { resultsFromStore } from '../shared/store/results.ts';
import { runPlacements } from '../shared/store/shard-places.ts';
import type { Store } from '../shared/store/store.ts';
import { readNamedFile } from './named-file.ts';
import { readManifest } from './stored-run.ts';
import { locate } from './verbs/verify-run.ts';

export type CompletedMember = Extract<GroupRecord['members'][number], { status: 'completed' }>;

export interface RecordedEpisode {
  /** For messages: the file, or task and member, with the group's number where the task has several groups. */
  name: string;
  /** The trajectory's bytes, those of a run checked against their claim. Throws FarmError (exit 2). */
  load: () => Promise<Buffer>;
  /** Null for a file, which belongs to no run. */
  of: { group: GroupRecord; member: CompletedMember } | null;
}

/** What a target holds. `close` when nothing more is loaded. */
export interface Recording {
  /** Null for a file. */
  run: string | null;
  episodes: AsyncIterable<RecordedEpisode>;
  /** The planned prompt of each group, once the run is finished; null where its task has none. */
  prompts: () => Promise<(group: number) => Promise<Value>>;
  close: () => Promise<void>;
}

/** Throws FarmError (exit 2) for what is neither a file nor a run. */
export async function openRecording(target: string): Promise<Recording> {
  const folder = existsSync(`${target}/manifest.json`) || existsSync(`${target}/shards`);
  if (existsSync(target) && !folder) return recordedFile(target);
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(target);
  if (!folder && !address && !RUN_ID.test(target))
    throw inputError('unknown_target', `${target} is neither a file nor a run`);
  const { store, run } = await locate(target);
  return {
    run,
    episodes: episodesOfRun(store, run),
    prompts: () => plannedPrompts(store, run),
    close: () => store.close(),
  };
}

function recordedFile(file: string): Recording {
  const episodes = (async function* (): AsyncGenerator<RecordedEpisode> {
    yield { name: file, load: async () => readNamedFile(file), of: null };
  })();
  return { run: null, episodes, prompts: async () => async () => null, close: async () => {} };
}

async function* episodesOfRun(store: Store, run: string): AsyncGenerator<RecordedEpisode> {
  const places = await runPlacements(store, run);
  // Whatever refills a group closes after it.
  const refills = new Set<number>();
  for await (const { line } of resultsFromStore(store, run, 0)) {
    const group = groupRecordSchema.parse(JSON.parse(line));
    const { refilled_by: refill } = group;
    const several = refill !== undefined || refills.delete(group.group);
    if (refill !== undefined) refills.add(refill);
    for (const member of group.members) {
      if (member.status !== 'completed') continue;
      const { trajectory: claim } = member;
      yield {
        name: `${group.task_id}/${member.member}${several ? ` (group ${group.group})` : ''}`,
        load: () => readContent(store, claim, places.get(claim.sha256)),
        of: { group, member },
      };
    }
  }
}

async function plannedPrompts(store: Store, run: string): Promise<(group: number) => Promise<Value>> {
  const manifest = await readManifest(store, run);
  if (manifest === null)
    throw inputError(
      'run_unfinished',
      `${run} is not finished: its manifest is not in ${store.address}`,
      `./farm status ${run} says how far it is; ./farm cancel ${run} closes it with what there is`,
    );
  const plan = await PlanIndex.open(store, manifest.plan);
  const read = async (group: number): Promise<Value> => {
    const [entry] = await plan.entries(group, group + 1);
    const held = entry === undefined ? null : (await readDocument(store, entry.place)).prompt;
    return held === null ? null : await readHeld(store, held);
  };
  // The members of a group follow each other.
  let last: { group: number; prompt: Promise<Value> } | null = null;
  return (group) => {
    if (last?.group !== group) last = { group, prompt: read(group) };
    return last.prompt;
  };
}
