// Turns of the event loop for long work: completions are large and many, and whoever reads them shares the process
// with deadlines, heartbeats and health checks. All callers stand in one line, so each comes back in a turn of its own.
/** So long may work go on before the timers get their turn. */
const TURN_MS = 20;
let since = 0;
let line = Promise.resolve();
/** To be awaited after each piece of work; passes the turn on when it has been long. */
export async function breathe() {
    if (performance.now() - since < TURN_MS)
        return;
    line = line.then(turn);
    await line;
    since = performance.now();
}
function turn() {
    return new Promise((resolve) => {
        setImmediate(resolve);
    });
}
