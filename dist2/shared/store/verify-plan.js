// The plan's part of verify-run: index, packs, documents, and every claim in a document resolve with their hashes.
// What the documents say of each group's episodes is noted, as marks, for the records and trajectories to come.
import { objectKey } from '../claim.js';
import { messageOf } from '../errors.js';
import { parseJson } from '../json/json.js';
import { isMap } from '../json/value.js';
import { walkPlan } from '../plan/walk.js';
import { ENVIRONMENT_CONFIGS } from '../spec/environment-config.js';
import { PlannedTasks, valueSha256 } from './planned-tasks.js';
const KEPT_HASHES = 10_000;
/** Hashes of what documents hold; what many of them claim is read once. */
class HeldHashes {
    account;
    kept = new Map();
    constructor(account) {
        this.account = account;
    }
    async setting({ env, seed, config }) {
        const known = ENVIRONMENT_CONFIGS.get(env);
        if (known === undefined)
            throw new TypeError(`there is no environment ${JSON.stringify(env)}`);
        const hash = await this.hash(env, config, (given) => {
            if (!isMap(given))
                throw new TypeError('its config is no object');
            return valueSha256(known.resolve(given));
        });
        if (hash === null)
            throw new TypeError('its config cannot be read');
        return { env, seed, configSha256: hash };
    }
    /** Null where only the environment's parser knows what a completion becomes. */
    async firstAction(play, env) {
        if (play.kind === 'actions')
            return this.hash('actions', play.actions, (actions) => {
                const first = Array.isArray(actions) ? actions[0] : actions;
                return first === undefined ? null : valueSha256(first);
            });
        if (env !== 'text')
            return null;
        return this.hash('text', play.completion, (text) => (typeof text === 'string' ? valueSha256(text) : null));
    }
    async hash(use, held, of) {
        if ('inline' in held)
            return of(held.inline);
        const name = `${use}/${held.claim.sha256}`;
        const kept = this.kept.get(name);
        if (kept !== undefined)
            return kept;
        const bytes = await this.account.get(objectKey(held.claim.sha256));
        const hash = bytes === null ? null : of(parseJson(bytes.toString('utf8')));
        if (this.kept.size >= KEPT_HASHES)
            this.kept.clear();
        this.kept.set(name, hash);
        return hash;
    }
}
/** Null if the plan cannot be read at all. */
export async function verifyPlan(account, plan) {
    // A place takes more than 200 bytes: a manifest cannot make us reserve memory that its index does not back.
    if (plan.groups * 100 > plan.index.bytes) {
        account.fault(`plan index ${plan.index.key}: ${plan.index.bytes} bytes are too few for ${plan.groups} groups`);
        return null;
    }
    if (!(await account.objects([plan.index], 'plan index')))
        return null;
    const tasks = new PlannedTasks(plan.groups);
    const hashes = new HeldHashes(account);
    let groups = 0;
    try {
        for await (const step of walkPlan(account.store, plan)) {
            if (step.kind === 'fault') {
                account.fault(step.fault);
                if (step.group !== null)
                    groups = step.group + 1;
                continue;
            }
            groups = step.group + 1;
            const whose = `plan document of group ${step.group}`;
            const sound = await account.objects(step.claims, whose);
            if (step.group >= plan.groups)
                continue;
            tasks.set(step.group, step.taskId, step.document.verify);
            if (sound)
                await notePlayed(tasks, step.group, step.document, hashes, whose, account);
        }
    }
    catch (error) {
        account.fault(`plan index ${plan.index.key}: ${messageOf(error)}`);
        return tasks;
    }
    if (groups !== plan.groups)
        account.fault(`plan index ${plan.index.key}: has ${groups} places where ${plan.groups} groups are planned`);
    return tasks;
}
async function notePlayed(tasks, group, document, hashes, whose, account) {
    try {
        tasks.setSetting(group, await hashes.setting(document));
        const actions = [];
        for (const play of document.plays)
            actions.push(await hashes.firstAction(play, document.env));
        tasks.setActions(group, actions);
    }
    catch (error) {
        account.fault(`${whose}: ${messageOf(error)}`);
    }
}
