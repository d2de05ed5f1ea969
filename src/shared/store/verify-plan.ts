// The plan's part of verify-run: index, packs, documents, and every claim in a document resolve with their hashes.
// Keeps of each group a mark of its task and one of its episode, by which records and trajectories are compared with
// what was planned.

import { createHash } from 'node:crypto';
import { objectKey, sha256 } from '../claim.ts';
import { messageOf } from '../errors.ts';
import { dumpJson, parseJson } from '../json/json.ts';
import { isMap, type Value, type ValueMap } from '../json/value.ts';
import type { Held, PlanDocument, PlanRef } from '../plan/plan.ts';
import { walkPlan } from '../plan/walk.ts';
import { ENVIRONMENT_CONFIGS } from '../spec/environment-config.ts';
import type { Account } from './verify-account.ts';

const MARK_BYTES = 8;
const KEPT_CONFIGS = 10_000;
const UNVERIFIED = 1;
const VERIFIED = 2;

/** What an episode is played in. */
interface Setting {
  env: Value;
  seed: Value;
  configSha256: string;
}

/** What each group was planned with. A group whose document could not be read fits everything: that is a fault already. */
export class PlannedTasks {
  private readonly tasks: Buffer;
  private readonly settings: Buffer;
  private readonly grading: Uint8Array;

  constructor(groups: number) {
    this.tasks = Buffer.alloc(groups * MARK_BYTES);
    this.settings = Buffer.alloc(groups * MARK_BYTES);
    this.grading = new Uint8Array(groups);
  }

  set(group: number, taskId: string, verify: boolean, setting: Setting | null): void {
    mark(JSON.stringify(taskId)).copy(this.tasks, group * MARK_BYTES);
    if (setting !== null) settingMark(setting).copy(this.settings, group * MARK_BYTES);
    this.grading[group] = verify ? VERIFIED : UNVERIFIED;
  }

  fits(group: number, taskId: string): boolean {
    return holds(this.tasks, group, () => mark(JSON.stringify(taskId)));
  }

  fitsSetting(group: number, setting: Setting): boolean {
    return holds(this.settings, group, () => settingMark(setting));
  }

  /** Whether the verifier grades the group; null where that is not known. */
  verified(group: number): boolean | null {
    const kept = this.grading[group];
    return kept === VERIFIED ? true : kept === UNVERIFIED ? false : null;
  }
}

function holds(marks: Buffer, group: number, wanted: () => Buffer): boolean {
  const kept = marks.subarray(group * MARK_BYTES, (group + 1) * MARK_BYTES);
  return kept.every((b) => b === 0) || kept.equals(wanted());
}

function mark(text: string): Buffer {
  return createHash('sha256').update(text).digest().subarray(0, MARK_BYTES);
}

function settingMark({ env, seed, configSha256 }: Setting): Buffer {
  return mark(dumpJson([env, seed, configSha256]));
}

/** The hash of a config as trajectories hold it. */
export function configSha256(config: Value): string {
  return sha256(dumpJson(config, { sortKeys: true, compact: true }));
}

/** The hashes of planned configs, resolved; those that many documents claim are read once. */
class PlannedConfigs {
  private readonly account: Account;
  private readonly kept = new Map<string, string>();

  constructor(account: Account) {
    this.account = account;
  }

  /** Null with a fault. */
  async setting({ env, seed, config }: PlanDocument, whose: string): Promise<Setting | null> {
    const known = ENVIRONMENT_CONFIGS.get(env);
    if (known === undefined) {
      this.account.fault(`${whose}: there is no environment ${JSON.stringify(env)}`);
      return null;
    }
    const name = 'claim' in config ? `${env}/${config.claim.sha256}` : null;
    const kept = name === null ? undefined : this.kept.get(name);
    if (kept !== undefined) return { env, seed, configSha256: kept };
    try {
      const given = await this.read(config);
      if (given === null) return null;
      const digest = configSha256(known.resolve(given));
      if (this.kept.size >= KEPT_CONFIGS) this.kept.clear();
      if (name !== null) this.kept.set(name, digest);
      return { env, seed, configSha256: digest };
    } catch (error) {
      this.account.fault(`${whose}: its config is none for ${env} (${messageOf(error)})`);
      return null;
    }
  }

  private async read(config: Held): Promise<ValueMap | null> {
    if ('inline' in config) return asMap(config.inline);
    const bytes = await this.account.get(objectKey(config.claim.sha256));
    return bytes === null ? null : asMap(parseJson(bytes.toString('utf8')));
  }
}

function asMap(value: Value): ValueMap {
  if (!isMap(value)) throw new TypeError('it is no object');
  return value;
}

/** Null if the plan cannot be read at all. */
export async function verifyPlan(account: Account, plan: PlanRef): Promise<PlannedTasks | null> {
  // A place takes more than 200 bytes: a manifest cannot make us reserve memory that its index does not back.
  if (plan.groups * 100 > plan.index.bytes) {
    account.fault(`plan index ${plan.index.key}: ${plan.index.bytes} bytes are too few for ${plan.groups} groups`);
    return null;
  }
  if (!(await account.objects([plan.index], 'plan index'))) return null;
  const tasks = new PlannedTasks(plan.groups);
  const configs = new PlannedConfigs(account);
  let groups = 0;
  try {
    for await (const step of walkPlan(account.store, plan)) {
      if (step.kind === 'fault') {
        account.fault(step.fault);
        if (step.group !== null) groups = step.group + 1;
        continue;
      }
      groups = step.group + 1;
      const whose = `plan document of group ${step.group}`;
      const sound = await account.objects(step.claims, whose);
      if (step.group >= plan.groups) continue;
      const setting = sound ? await configs.setting(step.document, whose) : null;
      tasks.set(step.group, step.taskId, step.document.verify, setting);
    }
  } catch (error) {
    account.fault(`plan index ${plan.index.key}: ${messageOf(error)}`);
    return tasks;
  }
  if (groups !== plan.groups)
    account.fault(`plan index ${plan.index.key}: has ${groups} places where ${plan.groups} groups are planned`);
  return tasks;
}
