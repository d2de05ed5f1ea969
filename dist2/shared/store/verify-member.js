// A completed member's own account in verify-run: its certificate names its trajectory, report and reward; its figures
// are ones that the ledger can have accepted; its components are those of its task, and give its reward.
import { isMap } from '../json/value.js';
import { MAX_ATTEMPTS } from '../outcome.js';
import { GRADE_LEVELS } from '../sandbox.js';
import { clipped, SHAPED, shapedSum } from '../shaped-total.js';
import { ENVIRONMENT_CONFIGS } from '../spec/environment-config.js';
/** From the spec in the manifest: what it does not say bounds nothing. */
export function memberRules(spec) {
    const maxSteps = spec.get('max_steps');
    const sandbox = spec.get('sandbox');
    const isolation = isMap(sandbox) ? sandbox.get('isolation') : null;
    return {
        maxSteps: typeof maxSteps === 'bigint' ? Number(maxSteps) : Number.POSITIVE_INFINITY,
        isolation: typeof isolation === 'string' ? isolation : null,
        verifier: verifierRules(spec.get('verifier')),
    };
}
function verifierRules(given) {
    if (!isMap(given))
        return null;
    const [weights, clip] = [given.get('weights'), given.get('clip')];
    if (!isMap(weights) || !Array.isArray(clip) || clip.length !== 2)
        return null;
    return {
        weights: new Map([...weights].map(([name, weight]) => [name, Number(weight)])),
        clip: [Number(clip[0]), Number(clip[1])],
        floor: Number(given.get('floor')),
    };
}
/** What does not hold, one text each. `verified` is null where the plan does not tell. */
export function memberFaults(member, verified, rules) {
    const faults = [];
    if (member.attempts > MAX_ATTEMPTS)
        faults.push(`has ${member.attempts} attempts, where ${MAX_ATTEMPTS} are the most`);
    if (member.status !== 'completed')
        return faults;
    if (member.steps < 1 || member.steps > rules.maxSteps)
        faults.push(`has ${member.steps} steps, where 1 to ${rules.maxSteps} can be`);
    if (member.seconds < 0)
        faults.push(`took ${member.seconds} seconds`);
    if (new Set(member.diagnostics).size !== member.diagnostics.length)
        faults.push('names a diagnostic twice');
    faults.push(...certificateFaults(member, rules));
    const fault = verified === null ? null : componentsFault(member, verified, rules);
    if (fault !== null)
        faults.push(fault);
    return faults;
}
function certificateFaults(member, rules) {
    const { certificate } = member;
    const faults = [];
    if (certificate.trajectory_sha256 !== member.trajectory.sha256)
        faults.push('its certificate names another trajectory');
    if (certificate.report_sha256 !== (member.report?.sha256 ?? null))
        faults.push('its certificate names another report');
    if (certificate.reward !== member.reward)
        faults.push(`its certificate says ${certificate.reward}, its reward is ${member.reward}`);
    const boxed = certificate.isolation !== 'none';
    if (!boxed && (certificate.image !== null || certificate.runner !== null))
        faults.push('its certificate names an image or a runner without a box');
    const ours = certificate.isolation === 'fresh' || certificate.isolation === 'recycled';
    if (ours && rules.isolation !== null && certificate.isolation !== rules.isolation)
        faults.push(`its certificate says that its box was ${certificate.isolation}, those of the run are ${rules.isolation}`);
    if (boxed && ENVIRONMENT_CONFIGS.get(certificate.env)?.usesSandbox === false)
        faults.push(`its certificate names a box, and ${certificate.env} opens none`);
    if (certificate.env === 'text' && certificate.grade !== 'verifier')
        faults.push(`its certificate says that ${certificate.grade} graded a text`);
    const level = GRADE_LEVELS.find((one) => one === certificate.grade);
    if (level !== undefined && certificate.env !== 'code-task')
        faults.push(`its certificate says that ${certificate.env} was graded ${level}`);
    if (certificate.warm !== undefined && (level === undefined || level === 'exit'))
        faults.push(`its certificate names a prepared interpreter for a grade ${certificate.grade}`);
    return faults;
}
/** The reward is the environment's part and, where a verifier grades, the shaped total of its parts, or the floor. */
function componentsFault(member, verified, { verifier }) {
    const { components, reward } = member;
    const text = member.certificate.env === 'text';
    const parts = Object.keys(components).filter((name) => name !== 'env');
    if (text === 'env' in components)
        return text ? 'a text has no component env' : 'its component env is missing';
    const env = components.env ?? 0;
    if (!verified) {
        if (parts.length > 0)
            return `has the component ${parts[0]}, and no verifier grades it`;
        if (member.report !== undefined)
            return 'has a report, and no verifier grades it';
        return env === reward ? null : `its reward is ${reward}, its component env ${env}`;
    }
    if (verifier === null)
        return 'is graded by a verifier, and the spec of the run has none';
    const missing = SHAPED.find(([name]) => !(name in components));
    if (parts.length > 0 && (missing || parts.length !== SHAPED.length))
        return `its components are not those of a verifier (${parts.join(', ')})`;
    if (parts.length > 0 && member.report === undefined)
        return 'has components of a verifier, and no report';
    const shaped = parts.length === 0
        ? verifier.floor
        : clipped(shapedSum((name) => verifier.weights.get(name), components), verifier.clip);
    const wanted = text ? shaped : env + shaped;
    return wanted === reward ? null : `its reward is ${reward}, its components give ${wanted}`;
}
