// Realms keep two farms' jobs apart on one Redis: a `run` with workers of its own has a private one, because another
// run's key, engine and store are not its own; `up`, `worker` and the gateway share one.
export const SHARED_REALM = 'shared';
export function privateRealm(run) {
    return `run.${run}`;
}
