// From a checked spec to one document a group: a pure function of the spec's content, so that planning again
// gives the same bytes and the same claims, and nothing is stored twice. What is large becomes an object of its own.
import { claimOf } from '../shared/claim.js';
import { dumpJson } from '../shared/json/json.js';
import { laneOf } from '../shared/lane.js';
import { encodeDocument, INLINE_BYTES } from '../shared/plan/plan.js';
/** Bound of all plays of one document together: those of a large group are inline only where they are small. */
const INLINE_PLAYS_BYTES = 4 * 1024 * 1024;
export function* planGroups(spec, source) {
    const limit = Math.min(INLINE_BYTES, Math.floor(INLINE_PLAYS_BYTES / spec.groupSize));
    // Members that share a line, and groups that share a script, share the object: it is written out once.
    let known = new Map();
    for (const task of source.tasks()) {
        known = new Map(task.plays.map((given) => [given, known.get(given) ?? writePlay(given, limit)]));
        yield planGroup(task, known);
    }
}
function planGroup(task, known) {
    const objects = new Map();
    const keep = (written) => {
        if (written.object !== null)
            objects.set(written.object.claim.key, written.object);
        return written.value;
    };
    const hold = (value) => keep(writeValue(value, INLINE_BYTES));
    const document = encodeDocument({
        task_id: task.id,
        env: task.env,
        seed: task.seed,
        config: hold(task.config),
        prompt: task.prompt === null ? null : hold(task.prompt),
        metadata: task.metadata === null ? null : hold(task.metadata),
        verify: task.verify,
        plays: task.plays.map((given) => keep(known.get(given))),
    });
    return { taskId: task.id, lane: laneOf(task.env), document, objects: [...objects.values()] };
}
function writePlay(given, limit) {
    if (given.kind === 'actions') {
        const { value, object } = writeValue(given.actions, limit);
        return { value: { kind: 'actions', actions: value }, object };
    }
    const { value, object } = writeValue(given.completion, limit);
    return { value: { kind: 'completion', completion: value }, object };
}
function writeValue(value, limit) {
    const content = Buffer.from(dumpJson(value));
    if (content.length <= limit)
        return { value: { inline: value }, object: null };
    const claim = claimOf(content);
    return { value: { claim }, object: { claim, content } };
}
