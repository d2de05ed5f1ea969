// Replay: run a recorded episode's actions through a fresh environment and hold every recorded field against what
// comes of it, by value and by type. Stricter than crucible's on purpose (INTERFACE, last section); what an older
// format could not record is named as unrecorded, not held against the file.
import { EnvironmentError } from '../../shared/environment.js';
import { inputError } from '../../shared/errors.js';
import { isMap, pyEqual, sameValue } from '../../shared/json/value.js';
import { cutCodePoints, repr, str } from '../../shared/python/text.js';
import { ENVIRONMENT_CONFIGS } from '../../shared/spec/environment-config.js';
import { integrityMismatches, totalReward } from '../../shared/trajectory.js';
import { stepOrLoss } from './episode.js';
const MAX_SHOWN = 10_000;
/** Throws FarmError (exit 2) where the file's environment cannot be built at all, BoxLost where a box could not be had. */
export async function replayTrajectory(trajectory, makeEnvironment, options = {}) {
    try {
        return await replayAgain(trajectory, makeEnvironment, options);
    }
    catch (error) {
        // A config that is sound in form, and yet makes nothing that can be played (a schema that is no SQL).
        if (!(error instanceof EnvironmentError))
            throw error;
        throw inputError('environment_config_invalid', `${str(trajectory.envId)} cannot be rebuilt: ${error.message}`);
    }
}
async function replayAgain(trajectory, makeEnvironment, options) {
    const mismatches = formFaults(trajectory);
    const expected = options.expected ?? {};
    const environment = rebuild(trajectory, makeEnvironment, expected.config);
    const differ = (what, found, recorded) => {
        if (!sameValue(found, recorded))
            mismatches.push(`${what}: replay ${shown(found)} != recorded ${shown(recorded)}`);
    };
    if (expected.envId !== undefined && expected.envId !== trajectory.envId) {
        mismatches.push(`environment: replaying ${repr(expected.envId)} against a trajectory recorded in ${repr(trajectory.envId)}`);
    }
    if (expected.seed !== undefined && !sameValue(expected.seed, trajectory.seed)) {
        mismatches.push(`seed: expected ${repr(expected.seed)} != recorded ${repr(trajectory.seed)}`);
    }
    if (expected.steps !== undefined && expected.steps !== trajectory.transitions.length) {
        mismatches.push(`steps: expected ${expected.steps} != recorded ${trajectory.transitions.length}`);
    }
    if (trajectory.envConfig !== undefined)
        differ('environment config', environment.config(), trajectory.envConfig);
    // Python seeds its generator with a number, a bool or a text; nothing else can have begun an episode.
    if (trajectory.seed === null || typeof trajectory.seed === 'object') {
        return { ok: false, steps: trajectory.transitions.length, mismatches, unrecorded: unrecordedOf(trajectory) };
    }
    let observation = await environment.reset(trajectory.seed);
    differ('initial observation', observation, trajectory.initialObservation);
    const rewards = [];
    const count = trajectory.transitions.length;
    for (const [i, recorded] of trajectory.transitions.entries()) {
        if (!sameValue(observation, recorded.observation)) {
            mismatches.push(`step ${i}: observation diverged from the record`);
        }
        const result = await stepOrLoss(environment, recorded.action, options.knownSignature ?? null);
        rewards.push(result.reward);
        const against = (what, found, value, text) => {
            if (!sameValue(found, value))
                mismatches.push(`step ${i}: ${what} ${text(found)} != recorded ${text(value)}`);
        };
        against('reward', result.reward, recorded.reward, str);
        against('done', result.done, recorded.done, str);
        against('info', result.info, recorded.info, shown);
        against('digest', environment.digest(), recorded.digest, shown);
        observation = result.observation;
        if (result.done) {
            if (i !== count - 1)
                mismatches.push(`step ${i}: replay ended early (${i + 1}/${count} steps)`);
            break;
        }
    }
    if (trajectory.finalObservation !== undefined)
        differ('final observation', observation, trajectory.finalObservation);
    // Sum and rewards agree by now, or a line says so: what is left is a total of another type.
    const total = totalReward(rewards);
    if (mismatches.length === 0 && !sameValue(total, trajectory.totalReward)) {
        mismatches.push(`total reward: recorded ${repr(trajectory.totalReward)} != replayed ${repr(total)}`);
    }
    if (expected.totalReward !== undefined && !sameValue(expected.totalReward, trajectory.totalReward)) {
        mismatches.push(`total reward: expected ${repr(expected.totalReward)} != recorded ${repr(trajectory.totalReward)}`);
    }
    return { ok: mismatches.length === 0, steps: count, mismatches, unrecorded: unrecordedOf(trajectory) };
}
/** Long values are cut: a line of this report is for people. */
function shown(value) {
    const text = repr(value);
    return text.length > MAX_SHOWN ? `${cutCodePoints(text, MAX_SHOWN)}…` : text;
}
/** What is wrong with the file by itself. */
function formFaults(trajectory) {
    const faults = integrityMismatches(trajectory);
    if (typeof trajectory.version !== 'bigint') {
        faults.push(`version: ${repr(trajectory.version)} is no integer`);
    }
    if (typeof trajectory.seed !== 'bigint')
        faults.push(`seed: ${repr(trajectory.seed)} is no integer`);
    if (trajectory.transitions.length === 0)
        faults.push('transitions: an episode without a step');
    if (pyEqual(trajectory.version, 3n) && trajectory.finalObservation === undefined) {
        faults.push('final observation: missing, in a file of version 3');
    }
    return faults;
}
function unrecordedOf(trajectory) {
    if (pyEqual(trajectory.version, 3n))
        return [];
    const names = [];
    if (trajectory.envConfig === undefined)
        names.push('env_config');
    if (trajectory.finalObservation === undefined)
        names.push('final_observation');
    return names;
}
function rebuild(trajectory, make, config) {
    const { envId } = trajectory;
    const known = [...ENVIRONMENT_CONFIGS.keys()].sort().join(', ');
    const entry = typeof envId === 'string' ? ENVIRONMENT_CONFIGS.get(envId) : undefined;
    if (!entry) {
        throw inputError('environment_unknown', `there is no environment ${repr(envId)}`, `known: ${known}`);
    }
    const recorded = trajectory.envConfig === undefined ? new Map() : trajectory.envConfig;
    const given = config ?? recorded;
    const problems = entry.check(given);
    if (problems.length > 0 || !isMap(given)) {
        const list = problems.map((problem) => `${problem.path}: ${problem.message}`).join('; ');
        const hint = trajectory.envConfig === undefined ? 'a version 1 file does not record its config' : undefined;
        throw inputError('environment_config_invalid', `${entry.name} cannot be rebuilt: ${list}`, hint);
    }
    return make(entry.name, entry.resolve(given));
}
