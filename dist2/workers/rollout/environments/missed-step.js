// The step that an action earns which crucible would raise on, or which killed its box: the miss reward, the reason in
// `info.error`, and the same for the agent to see. Whatever an action contains ends here, never in an exception.
import { mapOf } from '../../../shared/json/value.js';
import { cutCodePoints } from '../../../shared/python/text.js';
const MAX_ERROR = 2_000;
export function missedStep(reward, error, more = {}) {
    const text = error.length > MAX_ERROR ? `${cutCodePoints(error, MAX_ERROR)}…` : error;
    return {
        observation: mapOf({ error: text }),
        reward,
        done: more.done ?? false,
        info: mapOf({ error: text, ...more.info }),
        diagnostics: more.diagnostics ?? [],
    };
}
/** Fixed words: replay on another machine must find the same step, whatever that machine's engine calls the death. */
export function lostBoxStep(reward, lost, info = {}) {
    const memory = /oom|memory/i.test(lost.signature);
    return missedStep(reward, 'the action ended its sandbox', {
        info,
        diagnostics: [memory ? 'memory' : 'exit'],
        done: true,
    });
}
