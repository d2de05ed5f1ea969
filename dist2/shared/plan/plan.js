// The plan: one document a group, kept in the store in packs, found through one index object. A document holds
// what the group's episodes need; what is large in it is a claim. A plan is a pure function of the spec's
// content, so planning the same spec again gives the same bytes and the same claims.
import { z } from 'zod';
import { claimSchema } from '../claim.js';
import { dumpJson, parseJson, toValue } from '../json/json.js';
import { isMap, mapOf } from '../json/value.js';
/** Values above this many bytes of JSON become objects of their own; below, they travel in the document. */
export const INLINE_BYTES = 16 * 1024;
/** Always the same bytes for the same document. */
export function encodeDocument(document) {
    const held = (value) => value === null
        ? null
        : 'inline' in value
            ? mapOf({ inline: value.inline })
            : mapOf({ claim: mapOf({ ...value.claim, bytes: BigInt(value.claim.bytes) }) });
    const plays = document.plays.map((play) => play.kind === 'actions' ? mapOf({ actions: held(play.actions) }) : mapOf({ completion: held(play.completion) }));
    const { task_id, env, seed, config, prompt, metadata, verify } = document;
    const map = mapOf({ task_id, env, seed, config: held(config), prompt: held(prompt), metadata: held(metadata) });
    map.set('verify', verify).set('plays', plays);
    return Buffer.from(dumpJson(map, { compact: true }));
}
/** Throws TypeError or JsonError for bytes that `encodeDocument` did not make. */
export function decodeDocument(bytes) {
    const map = asMap(parseJson(Buffer.from(bytes).toString('utf8')));
    const { task_id, env, seed, verify, plays } = Object.fromEntries(map);
    if (typeof task_id !== 'string' || typeof env !== 'string' || typeof seed !== 'bigint')
        throw new TypeError('a plan document needs task_id, env and seed');
    if (typeof verify !== 'boolean' || !Array.isArray(plays) || plays.length === 0)
        throw new TypeError('a plan document needs verify and plays');
    const orNull = (key) => (map.get(key) === null ? null : asHeld(map.get(key)));
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
function asPlay(value) {
    const map = asMap(value);
    if (map.has('actions'))
        return { kind: 'actions', actions: asHeld(map.get('actions')) };
    return { kind: 'completion', completion: asHeld(map.get('completion')) };
}
function asHeld(value) {
    const map = asMap(value);
    const inline = map.get('inline');
    if (inline !== undefined)
        return { inline };
    const claim = asMap(map.get('claim'));
    return { claim: claimSchema.parse({ ...Object.fromEntries(claim), bytes: Number(claim.get('bytes')) }) };
}
function asMap(value) {
    if (!isMap(value))
        throw new TypeError('a plan document has an object here');
    return value;
}
/** Where a group's document lies. */
export const placeSchema = z.strictObject({
    pack: z.string().regex(/^[0-9a-f]{64}$/),
    offset: z.int().nonnegative(),
    bytes: z.int().positive(),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
// A line that names no lane is a sandboxed group's: so were all, before there were lanes.
const entrySchema = placeSchema.extend({ task_id: z.string(), lane: z.literal('light').optional() });
/** A line of the index, ASCII, without its newline. */
export function encodeEntry({ taskId, place, lane }) {
    return dumpJson(toValue({ task_id: taskId, ...place, ...(lane === 'light' ? { lane } : {}) }), { compact: true });
}
/** Throws on a line that is not one of an index. */
export function decodeEntry(line) {
    const { task_id, lane = 'rollout', ...place } = entrySchema.parse(JSON.parse(line));
    return { taskId: task_id, place, lane };
}
export const planRefSchema = z.strictObject({
    /** The index object: one PlanEntry a line, in group order. */
    index: claimSchema,
    groups: z.int().positive(),
    groupSize: z.int().positive(),
});
