// From what a call brought to what becomes of each of its queries: answered, asked again (when, in what company), or
// lost; and what the fleet learns of the upstream. Pure.
import { LEAST_PAUSE_MS } from '../client.js';
const BACKOFF_MAX_MS = 8_000;
/** A spoiled batch is asked again in parts of so many, then one by one: two calls find the query that spoils it. */
export const PART = 7;
export function settlementOf(result, tried, limits) {
    const { meanings, whole } = result;
    const count = meanings.length;
    const all = (kind) => meanings.every((meaning) => meaning.kind === kind);
    const halves = count > 1 && all('too_big');
    const half = Math.floor(count / 2);
    let pauseMs = 0;
    const fates = meanings.map((meaning, i) => {
        const { tries, waitedMs } = tried[i];
        switch (meaning.kind) {
            case 'verdict':
                // The platform echoes the query; what is kept and handed on has none.
                meaning.data.delete('query');
                return { kind: 'answered', answer: meaning };
            case 'denial':
            case 'misconfigured':
                return { kind: 'answered', answer: meaning };
            case 'not_understood':
                return unavailable(`the request is not understood: ${meaning.detail}`);
            case 'unsupported':
                return { kind: 'again', tries, waitedMs, company: 0, delayMs: 0 };
            case 'apart':
                return { kind: 'again', tries, waitedMs, company: 1, delayMs: 0 };
            case 'too_big':
                return halves
                    ? { kind: 'again', tries, waitedMs, company: half, delayMs: 0 }
                    : { kind: 'answered', answer: { kind: 'unreadable', detail: meaning.detail } };
            case 'rate_limited': {
                const { retryAfterMs } = meaning;
                const backoffMs = Math.min(BACKOFF_MAX_MS, Math.max(limits.backoffMs, waitedMs));
                const waitMs = Math.max(LEAST_PAUSE_MS, retryAfterMs ?? jittered(backoffMs, limits));
                pauseMs = Math.max(pauseMs, waitMs);
                if (waitMs <= limits.patienceMs && waitedMs + waitMs > limits.patienceMs)
                    return unavailable(`rate limited: ${meaning.detail}`);
                return { kind: 'again', tries, waitedMs: waitedMs + waitMs, company: 0, delayMs: 0 };
            }
            default: {
                if (tries + 1 >= limits.tries)
                    return { kind: 'lost', detail: meaning.detail };
                const company = whole === null || (result.suspect && count <= PART) ? 1 : result.suspect ? PART : 0;
                const delayMs = jittered(Math.min(BACKOFF_MAX_MS, limits.backoffMs * 2 ** tries), limits);
                return { kind: 'again', tries: tries + 1, waitedMs, company, delayMs };
            }
        }
    });
    const bad = meanings.find((meaning) => meaning.kind === 'misconfigured') ?? meanings.find((m) => 'detail' in m);
    return {
        fates,
        outcome: meanings.some((meaning) => meaning.kind === 'misconfigured')
            ? 'refused'
            : all('infrastructure')
                ? 'infra'
                : all('rate_limited') || all('apart')
                    ? 'none'
                    : 'ok',
        why: bad && 'detail' in bad ? bad.detail : '',
        pauseMs: Math.round(pauseMs),
        // A bound of our own says nothing about the platform's.
        halved: halves && !result.unsent ? half : 0,
        restored: count === 1 && whole === 'too_big',
        single: meanings.some((meaning) => meaning.kind === 'unsupported'),
    };
}
/** The call was broken off by ourselves: nothing is learned, nothing charged. */
export function givenBack(tried) {
    const fates = tried.map((one) => ({ kind: 'again', ...one, company: 0, delayMs: 0 }));
    return { fates, outcome: 'given_back', why: '', pauseMs: 0, halved: 0, restored: false, single: false };
}
function unavailable(detail) {
    return { kind: 'answered', answer: { kind: 'unavailable', detail } };
}
function jittered(ms, limits) {
    return Math.round(ms + limits.random() * ms * 0.25);
}
