// The episode loop: a policy acts in an environment until it is done, out of steps or out of actions, and everything
// that happened is recorded. What the action did is a step; what infrastructure or the task did is `no_result`, never
// a reward. An abort is thrown on as the signal's reason.
import { EnvironmentError } from '../../shared/environment.js';
import { detailOf } from '../../shared/outcome.js';
import { BoxLost } from '../../shared/sandbox.js';
import { FORMAT_VERSION, serializeTrajectory } from '../../shared/trajectory.js';
export async function runEpisode(options) {
    const { environment, signal } = options;
    try {
        return await play(options);
    }
    catch (error) {
        signal.throwIfAborted();
        if (error instanceof BoxLost) {
            const cause = error.phase === 'start' ? 'sandbox_start' : 'sandbox_lost';
            return { status: 'no_result', cause, detail: detailOf(error.message), signature: error.signature };
        }
        if (error instanceof EnvironmentError) {
            return {
                status: 'no_result',
                cause: 'environment_error',
                detail: detailOf(`${environment.name}: ${error.message}`),
            };
        }
        throw error;
    }
}
async function play({ environment, seed, policy, maxSteps, signal, knownSignature }) {
    signal.throwIfAborted();
    let observation = await environment.reset(seed);
    const trajectory = {
        version: FORMAT_VERSION,
        envId: environment.name,
        seed,
        initialObservation: observation,
        envConfig: environment.config(),
        transitions: [],
        totalReward: 0,
        finalObservation: undefined,
    };
    const diagnostics = new Set();
    let total = 0;
    let lastAction = null;
    while (trajectory.transitions.length < maxSteps) {
        const turn = await policy.act(observation, signal);
        signal.throwIfAborted();
        if ('end' in turn)
            break;
        lastAction = turn.action;
        const result = await stepOrLoss(environment, turn.action, knownSignature);
        signal.throwIfAborted();
        trajectory.transitions.push({
            observation,
            action: turn.action,
            reward: result.reward,
            done: result.done,
            info: result.info,
            digest: environment.digest(),
        });
        total += result.reward;
        for (const diagnostic of result.diagnostics)
            diagnostics.add(diagnostic);
        observation = result.observation;
        if (result.done)
            break;
    }
    const steps = trajectory.transitions.length;
    if (steps === 0) {
        return { status: 'no_result', cause: 'policy_rejected', detail: 'the policy ended without a single action' };
    }
    trajectory.totalReward = total;
    trajectory.finalObservation = observation;
    const bytes = serializeTrajectory(trajectory);
    return {
        status: 'completed',
        trajectory,
        bytes,
        totalReward: total,
        steps,
        diagnostics: [...diagnostics],
        lastAction,
    };
}
/** One step; a box that died under the action, or died as it did once before, makes it a recorded miss. */
export async function stepOrLoss(environment, action, knownSignature) {
    try {
        return await environment.step(action);
    }
    catch (error) {
        if (!(error instanceof BoxLost) || error.phase === 'start')
            throw error;
        if (error.blame === 'action' || error.signature === knownSignature)
            return environment.lostBox(error);
        throw error;
    }
}
