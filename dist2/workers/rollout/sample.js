// One completion scored in an environment, as a single-step episode in a fresh box of its own: what the interactive lane
// and a gateway without workers have in common. An abort is thrown on as the signal's reason.
import { DEFAULT_LIMITS } from '../../shared/sandbox.js';
import { makeEnvironment } from './environments/registry.js';
import { runEpisode } from './episode.js';
import { completionPolicy } from './policies/completions.js';
import { ended, WallDeadline, withinWall } from './wall-deadline.js';
/** The sum of what its parts may take: met only when something hangs. */
const WALL_MS = 220_000;
export async function playSample(asked, completion, context) {
    const { signal } = context;
    try {
        return await withinWall(WALL_MS, signal, (both) => play(asked, completion, { ...context, signal: both }));
    }
    catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof WallDeadline))
            throw error;
        return { outcome: { status: 'no_result', cause: 'environment_silent', detail: error.message }, signature: null };
    }
}
async function play(asked, completion, { openBox, signal, knownSignature }) {
    let box = null;
    try {
        const environment = makeEnvironment(asked.name, asked.config, {
            box: () => {
                box ??= openBox(signal);
                return box;
            },
            stepTimeoutMs: DEFAULT_LIMITS.timeoutMs,
            outputBytes: DEFAULT_LIMITS.outputBytes,
            signal,
        });
        const policy = completionPolicy(completion, environment);
        const episode = await runEpisode({ environment, seed: asked.seed, policy, maxSteps: 1, signal, knownSignature });
        if (episode.status === 'no_result') {
            const { cause, detail } = episode;
            const lost = cause === 'sandbox_start' || cause === 'sandbox_lost';
            return { outcome: { status: 'no_result', cause, detail }, signature: lost ? (episode.signature ?? cause) : null };
        }
        const { totalReward, steps, diagnostics } = episode;
        if (!Number.isFinite(totalReward)) {
            const detail = 'the reward is not a finite number';
            return { outcome: { status: 'no_result', cause: 'environment_error', detail }, signature: null };
        }
        return { outcome: { status: 'completed', reward: totalReward, steps, diagnostics }, signature: null };
    }
    finally {
        const closed = box?.then((opened) => opened.close(), () => { });
        if (closed !== undefined)
            await ended(closed);
    }
}
