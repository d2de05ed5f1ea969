// The plan: one document a group, kept in the store in packs, found through one index object. A document holds
// what the group's episodes need; what is large in it is a claim. A plan is a pure function of the spec's
// content, so planning the same spec again gives the same bytes and the same claims.

import { z } from 'zod';
import { type Claim, claimSchema } from '../claim.ts';
import { dumpJson, parseJson, toValue } from '../json/json.ts';
import { isMap, mapOf, type Value, type ValueMap } from '../json/value.ts';

/** Values above this many bytes of JSON become objects of their own; below, they travel in the document. */
export const INLINE_BYTES = 16 * 1024;

/** A value in the document, or a claim on its JSON text (UTF-8, `dumpJson`). */
export type Held = { inline: Value } | { claim: Claim };

/** How one member acts: a list of actions, or a completion that the environment's parser turns into one. */
export type Play = { kind: 'actions'; actions: Held } | { kind: 'completion'; completion: Held };

export interface PlanDocument {
  task_id: string;
  env: string;
  seed: bigint;
  config: Held;
  prompt: Held | null;
  metadata: Held | null;
  /** The member's text goes to the verifier: always for `text`, else if the task says so. */
  verify: boolean;
  /** One a member, in order; for a scripted policy a single play that all members share. */
  plays: Play[];
}

/** Always the same bytes for the same document. */
export function encodeDocument(document: PlanDocument): Buffer {
  const held = (value: Held | null): Value =>
    value === null
      ? null
      : 'inline' in value
        ? mapOf({ inline: value.inline })
        : mapOf({ claim: mapOf({ ...value.claim, bytes: BigInt(value.claim.bytes) }) });
  const plays = document.plays.map((play) =>
    play.kind === 'actions' ? mapOf({ actions: held(play.actions) }) : mapOf({ completion: held(play.completion) }),
  );
  const { task_id, env, seed, config, prompt, metadata, verify } = document;
  const map = mapOf({ task_id, env, seed, config: held(config), prompt: held(prompt), metadata: held(metadata) });
  map.set('verify', verify).set('plays', plays);
  return Buffer.from(dumpJson(map, { compact: true }));
}

/** Throws TypeError or JsonError for bytes that `encodeDocument` did not make. */
export function decodeDocument(bytes: Uint8Array): PlanDocument {
  const map = asMap(parseJson(Buffer.from(bytes).toString('utf8')));
  const { task_id, env, seed, verify, plays } = Object.fromEntries(map);
  if (typeof task_id !== 'string' || typeof env !== 'string' || typeof seed !== 'bigint')
    throw new TypeError('a plan document needs task_id, env and seed');
  if (typeof verify !== 'boolean' || !Array.isArray(plays) || plays.length === 0)
    throw new TypeError('a plan document needs verify and plays');
  const orNull = (key: string): Held | null => (map.get(key) === null ? null : asHeld(map.get(key)));
  return {
    task_id,
    env,
    seed,
    config: asHeld(map.get('config')),
    prompt: orNull('prompt'),
    metadata: orNull('metadata'),
    verify,
    plays: plays.map(asPlay),
  };
}

function asPlay(value: Value): Play {
  const map = asMap(value);
  if (map.has('actions')) return { kind: 'actions', actions: asHeld(map.get('actions')) };
  return { kind: 'completion', completion: asHeld(map.get('completion')) };
}

function asHeld(value: Value | undefined): Held {
  const map = asMap(value);
  const inline = map.get('inline');
  if (inline !== undefined) return { inline };
  const claim = asMap(map.get('claim'));
  return { claim: claimSchema.parse({ ...Object.fromEntries(claim), bytes: Number(claim.get('bytes')) }) };
}

function asMap(value: Value | undefined): ValueMap {
  if (!isMap(value)) throw new TypeError('a plan document has an object here');
  return value;
}

/** Where a group's document lies. */
export const placeSchema = z.strictObject({
  pack: z.string().regex(/^[0-9a-f]{64}$/),
  offset: z.int().nonnegative(),
  bytes: z.int().positive(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type Place = z.infer<typeof placeSchema>;

/** What the index says of a group, in group order. */
export interface PlanEntry {
  taskId: string;
  place: Place;
  /** Where its members wait for their slots. */
  lane: 'rollout' | 'light';
  /** The further group of its task that is opened if this one comes out degenerate. */
  spare?: number;
}

// A line that names no lane is a sandboxed group's: so were all, before there were lanes.
const entrySchema = placeSchema.extend({
  task_id: z.string(),
  lane: z.literal('light').optional(),
  spare: z.int().positive().optional(),
});

/** A line of the index, ASCII, without its newline. */
export function encodeEntry({ taskId, place, lane, spare }: PlanEntry): string {
  const rest = { ...(lane === 'light' ? { lane } : {}), ...(spare === undefined ? {} : { spare }) };
  return dumpJson(toValue({ task_id: taskId, ...place, ...rest }), { compact: true });
}

/** Throws on a line that is not one of an index. */
export function decodeEntry(line: string): PlanEntry {
  const { task_id, lane = 'rollout', spare, ...place } = entrySchema.parse(JSON.parse(line));
  return { taskId: task_id, place, lane, ...(spare === undefined ? {} : { spare }) };
}

export const planRefSchema = z.strictObject({
  /** The index object: one PlanEntry a line, in group order, the spares behind the groups. */
  index: claimSchema,
  groups: z.int().positive(),
  groupSize: z.int().positive(),
  /** Groups held ready for degenerate ones; a plan without any does not say so. */
  spares: z.int().positive().optional(),
});
export type PlanRef = z.infer<typeof planRefSchema>;

/** Lines of the index. */
export function placesIn({ groups, spares = 0 }: PlanRef): number {
  return groups + spares;
}
