// A policy that plays one given completion: its text becomes the environment's action by the environment's own parser.
// A completion that is no text at all is played as it is, and earns what it earns.
import { isMap } from '../../../shared/json/value.js';
import { scriptedPolicy } from './scripted.js';
export function completionPolicy(completion, environment) {
    const text = completionText(completion);
    return scriptedPolicy([text === null ? completion : environment.parseCompletion(text)]);
}
/** The text of a completion: itself, or the contents of its messages, one after another. Null if it has none. */
function completionText(completion) {
    if (typeof completion === 'string')
        return completion;
    if (!Array.isArray(completion) || completion.length === 0)
        return null;
    const texts = [];
    for (const message of completion) {
        const content = isMap(message) ? message.get('content') : undefined;
        if (typeof content !== 'string')
            return null;
        texts.push(content);
    }
    return texts.join('\n');
}
