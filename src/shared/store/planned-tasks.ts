// What each group was planned with, as marks of eight bytes: its task, its environment with seed and config, and the
// first action of each member where the plan tells it. Records and trajectories are compared with them. Where a plan's
// document could not be read there are none, and everything fits: that is a fault already.

import { createHash } from 'node:crypto';
import { sha256 } from '../claim.ts';
import { dumpJson } from '../json/json.ts';
import type { Value } from '../json/value.ts';

const MARK_BYTES = 8;
const NO_MARK = Buffer.alloc(MARK_BYTES);
const UNVERIFIED = 1;
const VERIFIED = 2;

/** What an episode is played in. */
export interface Setting {
  env: Value;
  seed: Value;
  /** Of the config as trajectories hold it. */
  configSha256: string;
}

export class PlannedTasks {
  private readonly tasks: Buffer;
  private readonly settings: Buffer;
  private readonly grading: Uint8Array;
  private readonly actions = new Map<number, Buffer>();
  private readonly spares = new Map<number, number>();

  constructor(groups: number) {
    this.tasks = Buffer.alloc(groups * MARK_BYTES);
    this.settings = Buffer.alloc(groups * MARK_BYTES);
    this.grading = new Uint8Array(groups);
  }

  set(group: number, taskId: string, verify: boolean): void {
    mark(JSON.stringify(taskId)).copy(this.tasks, group * MARK_BYTES);
    this.grading[group] = verify ? VERIFIED : UNVERIFIED;
  }

  setSpare(group: number, spare: number): void {
    this.spares.set(group, spare);
  }

  spare(group: number): number | null {
    return this.spares.get(group) ?? null;
  }

  setSetting(group: number, setting: Setting): void {
    settingMark(setting).copy(this.settings, group * MARK_BYTES);
  }

  /** The hash of the first action, one a member or a single one for all; null where it is not known. */
  setActions(group: number, hashes: readonly (string | null)[]): void {
    if (hashes.every((hash) => hash === null)) return;
    this.actions.set(group, Buffer.concat(hashes.map((hash) => (hash === null ? NO_MARK : mark(hash)))));
  }

  fits(group: number, taskId: string): boolean {
    return holds(this.tasks, group, () => mark(JSON.stringify(taskId)));
  }

  fitsSetting(group: number, setting: Setting): boolean {
    return holds(this.settings, group, () => settingMark(setting));
  }

  fitsAction(group: number, member: number, hash: string): boolean {
    const marks = this.actions.get(group);
    return marks === undefined || holds(marks, marks.length === MARK_BYTES ? 0 : member, () => mark(hash));
  }

  /** Whether the verifier grades the group; null where that is not known. */
  verified(group: number): boolean | null {
    const kept = this.grading[group];
    return kept === VERIFIED ? true : kept === UNVERIFIED ? false : null;
  }
}

function holds(marks: Buffer, place: number, wanted: () => Buffer): boolean {
  const kept = marks.subarray(place * MARK_BYTES, (place + 1) * MARK_BYTES);
  return kept.every((b) => b === 0) || kept.equals(wanted());
}

function mark(text: string): Buffer {
  return createHash('sha256').update(text).digest().subarray(0, MARK_BYTES);
}

function settingMark({ env, seed, configSha256 }: Setting): Buffer {
  return mark(dumpJson([env, seed, configSha256]));
}

/** Of a config or an action, in whatever order its keys stand. */
export function valueSha256(value: Value): string {
  return sha256(dumpJson(value, { sortKeys: true, compact: true }));
}
