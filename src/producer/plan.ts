// From a checked spec to one document a group: a pure function of the spec's content, so that planning again
// gives the same bytes and the same claims, and nothing is stored twice. What is large becomes an object of its own.

import { type Claim, claimOf } from '../shared/claim.ts';
import { dumpJson } from '../shared/json/json.ts';
import type { Value } from '../shared/json/value.ts';
import { laneOf } from '../shared/lane.ts';
import { encodeDocument, type Held, INLINE_BYTES, type PlanEntry, type Play } from '../shared/plan/plan.ts';
import type { GivenPlay } from '../shared/spec/completions.ts';
import type { SourceTask, TaskSource } from '../shared/spec/source.ts';
import type { RunSpec } from '../shared/spec/spec.ts';

interface PlannedObject {
  claim: Claim;
  content: Buffer;
}

export interface PlannedGroup {
  taskId: string;
  lane: PlanEntry['lane'];
  /** Held ready for a degenerate group: no group of the plan's own. */
  held: boolean;
  /** The group that is opened if this one comes out degenerate. */
  spare: number | null;
  /** The encoded PlanDocument. */
  document: Buffer;
  /** What the document claims, each once. */
  objects: PlannedObject[];
}

/** Bound of all plays of one document together: those of a large group are inline only where they are small. */
const INLINE_PLAYS_BYTES = 4 * 1024 * 1024;

/**
 * First a group for each task, in their order. Behind them stand the spares: for each task that has answers left over the
 * second group that can be made of them, then the third ones, up to `groups.refill_degenerate`. Each names the one after it.
 */
export function* planGroups(spec: RunSpec, source: TaskSource): Iterable<PlannedGroup> {
  const limit = Math.min(INLINE_BYTES, Math.floor(INLINE_PLAYS_BYTES / spec.groupSize));
  // Members that share a line, and groups that share a script, share the object: it is written out once.
  let known = new Map<GivenPlay, Written<Play>>();
  let number = 0;
  let spares = source.count;
  let among: number[] | undefined;
  for (let round = 0; round <= spec.groups.refillDegenerate && number < spares; round++) {
    const further: number[] = [];
    for (const task of source.tasks(round, among)) {
      known = new Map(task.plays.map((given) => [given, known.get(given) ?? writePlay(given, limit)]));
      const refilled = round < spec.groups.refillDegenerate && task.more;
      if (refilled) further.push(task.place);
      number++;
      yield planGroup(task, known, { held: round > 0, spare: refilled ? spares++ : null });
    }
    among = further;
  }
}

interface Written<T> {
  value: T;
  object: PlannedObject | null;
}

function planGroup(
  task: SourceTask,
  known: Map<GivenPlay, Written<Play>>,
  standing: Pick<PlannedGroup, 'held' | 'spare'>,
): PlannedGroup {
  const objects = new Map<string, PlannedObject>();
  const keep = <T>(written: Written<T>): T => {
    if (written.object !== null) objects.set(written.object.claim.key, written.object);
    return written.value;
  };
  const hold = (value: Value): Held => keep(writeValue(value, INLINE_BYTES));
  const document = encodeDocument({
    task_id: task.id,
    env: task.env,
    seed: task.seed,
    config: hold(task.config),
    prompt: task.prompt === null ? null : hold(task.prompt),
    metadata: task.metadata === null ? null : hold(task.metadata),
    verify: task.verify,
    plays: task.plays.map((given) => keep(known.get(given) as Written<Play>)),
  });
  return { taskId: task.id, lane: laneOf(task.env), ...standing, document, objects: [...objects.values()] };
}

function writePlay(given: GivenPlay, limit: number): Written<Play> {
  if (given.kind === 'actions') {
    const { value, object } = writeValue(given.actions, limit);
    return { value: { kind: 'actions', actions: value }, object };
  }
  const { value, object } = writeValue(given.completion, limit);
  return { value: { kind: 'completion', completion: value }, object };
}

function writeValue(value: Value, limit: number): Written<Held> {
  const content = Buffer.from(dumpJson(value));
  if (content.length <= limit) return { value: { inline: value }, object: null };
  const claim = claimOf(content);
  return { value: { claim }, object: { claim, content } };
}
