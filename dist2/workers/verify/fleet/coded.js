// What the scripts say in one letter or one word, in full: the codes of answers (state.lua lists them), and the events
// of an upstream, each of which one script call of the whole fleet brings about and its caller logs.
const EVENTS = {
    open: ['warn', 'verifier circuit open'],
    half: ['info', 'verifier circuit half open: one probe'],
    closed: ['info', 'verifier circuit closed'],
    rate_limited: ['warn', 'verifier rate limited: the fleet waits'],
    refused: ['warn', 'verifier refuses key or platform'],
    batch: ['info', 'verifier batches halved'],
    single: ['info', 'verifier has no batch path: single calls'],
};
export function logEvent(log, event, fields) {
    const said = EVENTS[event];
    if (said)
        log[said[0]](fields, said[1]);
}
/** The answer of a code that carries no value of a platform. */
export function spoken(code, detail) {
    switch (code) {
        case 'x':
            return { kind: 'unreadable', detail };
        case 'm':
            return { kind: 'misconfigured', detail };
        case 'b':
            return { kind: 'budget', detail: 'the run may not ask more queries' };
        case 'o':
            return { kind: 'unavailable', detail: `circuit open: ${detail}`, held: true };
        case 'h':
            return {
                kind: 'unavailable',
                detail: `rate limited for longer than a query may wait: ${detail}`,
                held: true,
            };
        default:
            return { kind: 'unavailable', detail };
    }
}
