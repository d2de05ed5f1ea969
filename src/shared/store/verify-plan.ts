// The plan's part of verify-run: index, packs, documents, and every claim in a document resolve with their hashes.
// What the documents say of each group's episodes is noted, as marks, for the records and trajectories to come.

import { objectKey } from '../claim.ts';
import { messageOf } from '../errors.ts';
import { parseJson } from '../json/json.ts';
import { isMap, type Value } from '../json/value.ts';
import { type Held, type PlanDocument, type PlanRef, type Play, placesIn } from '../plan/plan.ts';
import { walkPlan } from '../plan/walk.ts';
import { ENVIRONMENT_CONFIGS } from '../spec/environment-config.ts';
import { PlannedTasks, type Setting, valueSha256 } from './planned-tasks.ts';
import type { Account } from './verify-account.ts';

const KEPT_HASHES = 10_000;

/** Hashes of what documents hold; what many of them claim is read once. */
class HeldHashes {
  private readonly account: Account;
  private readonly kept = new Map<string, string | null>();

  constructor(account: Account) {
    this.account = account;
  }

  async setting({ env, seed, config }: PlanDocument): Promise<Setting> {
    const known = ENVIRONMENT_CONFIGS.get(env);
    if (known === undefined) throw new TypeError(`there is no environment ${JSON.stringify(env)}`);
    const hash = await this.hash(env, config, (given) => {
      if (!isMap(given)) throw new TypeError('its config is no object');
      return valueSha256(known.resolve(given));
    });
    if (hash === null) throw new TypeError('its config cannot be read');
    return { env, seed, configSha256: hash };
  }

  /** Null where only the environment's parser knows what a completion becomes. */
  async firstAction(play: Play, env: string): Promise<string | null> {
    if (play.kind === 'actions')
      return this.hash('actions', play.actions, (actions) => {
        const first = Array.isArray(actions) ? actions[0] : actions;
        return first === undefined ? null : valueSha256(first);
      });
    if (env !== 'text') return null;
    return this.hash('text', play.completion, (text) => (typeof text === 'string' ? valueSha256(text) : null));
  }

  private async hash(use: string, held: Held, of: (value: Value) => string | null): Promise<string | null> {
    if ('inline' in held) return of(held.inline);
    const name = `${use}/${held.claim.sha256}`;
    const kept = this.kept.get(name);
    if (kept !== undefined) return kept;
    const bytes = await this.account.get(objectKey(held.claim.sha256));
    const hash = bytes === null ? null : of(parseJson(bytes.toString('utf8')));
    if (this.kept.size >= KEPT_HASHES) this.kept.clear();
    this.kept.set(name, hash);
    return hash;
  }
}

/** Null if the plan cannot be read at all. */
export async function verifyPlan(account: Account, plan: PlanRef): Promise<PlannedTasks | null> {
  // A place takes more than 200 bytes: a manifest cannot make us reserve memory that its index does not back.
  const places = placesIn(plan);
  if (places * 100 > plan.index.bytes) {
    account.fault(`plan index ${plan.index.key}: ${plan.index.bytes} bytes are too few for ${places} groups`);
    return null;
  }
  if (!(await account.objects([plan.index], 'plan index'))) return null;
  const tasks = new PlannedTasks(places);
  const hashes = new HeldHashes(account);
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
      if (step.group >= places) continue;
      tasks.set(step.group, step.taskId, step.document.verify);
      if (step.spare !== null) tasks.setSpare(step.group, step.spare);
      if (sound) await notePlayed(tasks, step.group, step.document, hashes, whose, account);
    }
  } catch (error) {
    account.fault(`plan index ${plan.index.key}: ${messageOf(error)}`);
    return tasks;
  }
  if (groups !== places)
    account.fault(`plan index ${plan.index.key}: has ${groups} places where ${places} groups are planned`);
  return tasks;
}

async function notePlayed(
  tasks: PlannedTasks,
  group: number,
  document: PlanDocument,
  hashes: HeldHashes,
  whose: string,
  account: Account,
): Promise<void> {
  try {
    tasks.setSetting(group, await hashes.setting(document));
    const actions: (string | null)[] = [];
    for (const play of document.plays) actions.push(await hashes.firstAction(play, document.env));
    tasks.setActions(group, actions);
  } catch (error) {
    account.fault(`${whose}: ${messageOf(error)}`);
  }
}
