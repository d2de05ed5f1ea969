// A policy that plays a list of actions, one a step, whatever it sees, and then has none left.
export function scriptedPolicy(actions) {
    let next = 0;
    return {
        async act() {
            const action = actions[next++];
            return action === undefined ? { end: true } : { action };
        },
    };
}
