// The environment contract, crucible's: `reset(seed)` and the actions determine everything that follows.
// An environment is a trusted state machine in this process; whatever is untrusted runs in a box (sandbox.ts)
// that it opens through its context, and is judged out here.
/** The environment itself is at fault (a seed script that fails, files that do not fit), not the action: no result, never a reward. */
export class EnvironmentError extends Error {
    constructor(message, cause) {
        super(message, cause === undefined ? undefined : { cause });
        this.name = 'EnvironmentError';
    }
}
