// The policy of a planned member: its actions, or its completion, fetched from where the plan holds them.
import { completionPolicy } from './completions.js';
import { scriptedPolicy } from './scripted.js';
export async function givenPolicy(play, read, environment) {
    if (play.kind === 'completion')
        return completionPolicy(await read(play.completion), environment);
    const actions = await read(play.actions);
    return scriptedPolicy(Array.isArray(actions) ? actions : [actions]);
}
