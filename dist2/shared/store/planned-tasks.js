// What each group was planned with, as marks of eight bytes: its task, its environment with seed and config, and the
// first action of each member where the plan tells it. Records and trajectories are compared with them. Where a plan's
// document could not be read there are none, and everything fits: that is a fault already.
import { createHash } from 'node:crypto';
import { sha256 } from '../claim.js';
import { dumpJson } from '../json/json.js';
const MARK_BYTES = 8;
const NO_MARK = Buffer.alloc(MARK_BYTES);
const UNVERIFIED = 1;
const VERIFIED = 2;
export class PlannedTasks {
    tasks;
    settings;
    grading;
    actions = new Map();
    constructor(groups) {
        this.tasks = Buffer.alloc(groups * MARK_BYTES);
        this.settings = Buffer.alloc(groups * MARK_BYTES);
        this.grading = new Uint8Array(groups);
    }
    set(group, taskId, verify) {
        mark(JSON.stringify(taskId)).copy(this.tasks, group * MARK_BYTES);
        this.grading[group] = verify ? VERIFIED : UNVERIFIED;
    }
    setSetting(group, setting) {
        settingMark(setting).copy(this.settings, group * MARK_BYTES);
    }
    /** The hash of the first action, one a member or a single one for all; null where it is not known. */
    setActions(group, hashes) {
        if (hashes.every((hash) => hash === null))
            return;
        this.actions.set(group, Buffer.concat(hashes.map((hash) => (hash === null ? NO_MARK : mark(hash)))));
    }
    fits(group, taskId) {
        return holds(this.tasks, group, () => mark(JSON.stringify(taskId)));
    }
    fitsSetting(group, setting) {
        return holds(this.settings, group, () => settingMark(setting));
    }
    fitsAction(group, member, hash) {
        const marks = this.actions.get(group);
        return marks === undefined || holds(marks, marks.length === MARK_BYTES ? 0 : member, () => mark(hash));
    }
    /** Whether the verifier grades the group; null where that is not known. */
    verified(group) {
        const kept = this.grading[group];
        return kept === VERIFIED ? true : kept === UNVERIFIED ? false : null;
    }
}
function holds(marks, place, wanted) {
    const kept = marks.subarray(place * MARK_BYTES, (place + 1) * MARK_BYTES);
    return kept.every((b) => b === 0) || kept.equals(wanted());
}
function mark(text) {
    return createHash('sha256').update(text).digest().subarray(0, MARK_BYTES);
}
function settingMark({ env, seed, configSha256 }) {
    return mark(dumpJson([env, seed, configSha256]));
}
/** Of a config or an action, in whatever order its keys stand. */
export function valueSha256(value) {
    return sha256(dumpJson(value, { sortKeys: true, compact: true }));
}
