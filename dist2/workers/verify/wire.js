// What an answer of the platform means. One function for a whole answer, one for an item of a batch, both total:
// every answer is a verdict, a refusal to certify (about this completion), or about the infrastructure, the limits,
// the run's configuration or the request. Only the first two may ever become a reward.
import { parseJson } from '../../shared/json/json.js';
import { isMap, pyTruthy } from '../../shared/json/value.js';
import { str } from '../../shared/python/text.js';
import { allFinite } from './finite.js';
import { redactValue } from './redact.js';
/** The fields that a reward needs, in the order in which they are asked for. */
export const PROJECTION = ['proof_checked', 'answer', 'decision', 'proof_summary', 'explanation'];
const REFUSALS = new Set(['unauthorized', 'forbidden', 'capability_disabled', 'not_found', 'payment_required']);
/** Fields of the request itself: a fault in one of these says nothing about the facts. */
const REQUEST_FIELDS = new Set(['query', 'explain', 'top_k', 'projection', 'predictions', 'platform_id']);
/** A longer wait is not believed. */
const RETRY_AFTER_MAX_MS = 300_000;
/** The meaning of a whole answer. */
export function meaningOf(answer, asked, now) {
    const body = envelopeOf(answer.body, asked.redact);
    if (answer.status >= 200 && answer.status < 300) {
        const data = body?.get('data');
        if (!isMap(data) || body?.get('ok') !== true || given(body, 'error'))
            return infrastructure(`HTTP ${answer.status} without an answer`);
        if (!finiteBeside(body, 'data') || (asked.batch && !finiteBeside(data, 'results')))
            return infrastructure(NOT_FINITE);
        if (!asked.batch)
            return verdictOf(data, asked.platformId);
        return ofPlatform(data, asked.platformId) ? { kind: 'verdict', data } : infrastructure(STRANGER);
    }
    const error = body?.get('ok') === false ? body.get('error') : null;
    const fault = errorMeaning(answer.status, isMap(error) ? error : null, body ?? new Map(), asked);
    return fault.kind === 'rate_limited' ? { ...fault, retryAfterMs: retryAfterMs(answer.retryAfter, now) } : fault;
}
/** The meaning of each query's result in a batch's `data`, in the order asked; matched by `index`. */
export function itemMeanings(data, count, platformId) {
    const results = data.get('results');
    const found = new Array(count);
    if (Array.isArray(results)) {
        for (const result of results) {
            if (!isMap(result))
                continue;
            const index = result.get('index');
            if (typeof index !== 'bigint' || index < 0n || index >= BigInt(count))
                continue;
            const at = Number(index);
            found[at] = found[at] ? infrastructure('two results for one query') : itemMeaning(result, platformId);
        }
    }
    return Array.from(found, (meaning) => meaning ?? infrastructure('no result for this query'));
}
function itemMeaning(result, platformId) {
    const status = result.get('status');
    const data = result.get('data');
    const error = result.get('error');
    if (status === 'ok') {
        if (given(result, 'error'))
            return infrastructure('an item that is both ok and an error');
        return isMap(data) ? verdictOf(data, platformId) : infrastructure('an item without data');
    }
    if (status !== 'error' || !isMap(error))
        return infrastructure('an item that is neither ok nor an error');
    const code = error.get('status_code');
    if (typeof code === 'bigint')
        return errorMeaning(Number(code), error, result, { batch: false, count: 1 });
    return codeMeaning(error, result);
}
const STRANGER = 'an answer of another platform';
const NOT_FINITE = 'an answer with a number that is not finite';
/** What stands beside `key`, which is looked at for itself. */
function finiteBeside(map, key) {
    return [...map].every(([name, value]) => name === key || allFinite(value));
}
/** An answer that a certificate can be read from. */
function verdictOf(data, platformId) {
    const checked = data.get('proof_checked') ?? null;
    const explanation = data.get('explanation') ?? null;
    if (!allFinite(data))
        return infrastructure(NOT_FINITE);
    if (!PROJECTION.some((field) => data.has(field)))
        return infrastructure('an answer with none of the fields asked for');
    if (checked !== null && typeof checked !== 'boolean')
        return infrastructure('an answer whose proof_checked is neither true, false nor null');
    if (explanation !== null && !isMap(explanation))
        return infrastructure('an answer whose explanation is not a map');
    if (isMap(explanation) && overflows(explanation.get('confidence') ?? null))
        return infrastructure('an answer whose confidence is larger than any number');
    if (!ofPlatform(data, platformId))
        return infrastructure(STRANGER);
    const silent = checked === null && !given(data, 'decision') && (explanation === null || explanation.size === 0);
    if (silent || (data.get('status') === 'unavailable' && checked !== true))
        return infrastructure('the platform could not decide now');
    return { kind: 'verdict', data };
}
/** An integer among its figures that no float holds. */
function overflows(confidence) {
    const figures = isMap(confidence) ? [...confidence.values()] : [];
    return figures.some((figure) => typeof figure === 'bigint' && !Number.isFinite(Number(figure)));
}
function ofPlatform(data, platformId) {
    return (platformId === null || !given(data, 'platform_id') || str(data.get('platform_id')) === `${platformId}`);
}
function errorMeaning(status, error, top, { batch, count }) {
    const detail = `HTTP ${status}${error ? `, ${summaryOf(error)}` : ''}`;
    if (status === 429)
        return { kind: 'rate_limited', retryAfterMs: null, detail };
    if (status === 404 && batch && !aboutPlatform(error))
        return { kind: 'unsupported', detail };
    if (status === 405 && batch)
        return { kind: 'unsupported', detail };
    if (status === 401 || status === 402 || status === 403 || status === 404)
        return { kind: 'misconfigured', detail };
    if (status === 413)
        return { kind: 'too_big', detail };
    if (!error || status === 408 || status === 409 || status < 400)
        return infrastructure(detail);
    const request = status === 400 || status === 422;
    if (batch && request && aboutCount(error))
        return { kind: 'too_big', detail };
    const denied = isDenial(error, top, request);
    // Of a batch of one the refusal is believed only where it names facts: the path itself may be what is refused.
    if (count > 1 && (denied || request))
        return { kind: 'apart', detail };
    if (batch && !namesFacts(error, top) && (denied || request) && status !== 502 && status !== 504)
        return { kind: 'apart', detail };
    // A gateway's own statuses, whatever they carry: nobody has judged anything.
    if (status === 502 || status === 504)
        return infrastructure(detail);
    if (denied)
        return { kind: 'denial', denial: denialOf(error, top) };
    return status >= 500 ? infrastructure(detail) : { kind: 'not_understood', detail };
}
function codeMeaning(error, top) {
    const code = textOf(error.get('code')).toLowerCase();
    const detail = summaryOf(error);
    if (/^rate[_-]?limit/.test(code) || code === 'too_many_requests')
        return { kind: 'rate_limited', retryAfterMs: null, detail };
    if (REFUSALS.has(code))
        return { kind: 'misconfigured', detail };
    return isDenial(error, top, false) ? { kind: 'denial', denial: denialOf(error, top) } : infrastructure(detail);
}
function namesFacts(error, top) {
    const listed = filled(pick(error, top, 'rejected_facts')) || filled(pick(error, top, 'missing_atoms'));
    return listed || aspectsOf(error).some((aspect) => aspect !== 'request');
}
/** `request`: the status says that something in the request is wrong. */
function isDenial(error, top, request) {
    if (filled(pick(error, top, 'rejected_facts')) || filled(pick(error, top, 'missing_atoms')))
        return true;
    const code = textOf(error.get('code')).toLowerCase();
    if (code === 'service_unavailable' || code === 'certification_failed')
        return true;
    const aspects = aspectsOf(error);
    if (code === 'validation_error')
        return aspects.length === 0 || aspects.some((aspect) => aspect !== 'request');
    return request && aspects.includes('facts');
}
/** What the fields in the details are parts of: `queries.3.facts.age`, `body.top_k`, `age`. */
function aspectsOf(error) {
    return detailsOf(error).map((entry) => {
        const path = textOf(entry.get('field'))
            .split(/[.[\]/]+/)
            .filter((segment) => segment !== '');
        if (path.includes('facts') || path.includes('relations'))
            return 'facts';
        const name = path.find((segment) => !/^(?:body|queries|\d+)$/.test(segment));
        if (path.length === 0)
            return 'unknown';
        return name === undefined || REQUEST_FIELDS.has(name) ? 'request' : 'unknown';
    });
}
/** What the SDK's error would say and carry: diagnostics stand inside the error or beside it. */
function denialOf(error, top) {
    const details = detailsOf(error);
    const said = details
        .map((entry) => ['field', 'message'].flatMap((key) => (pyTruthy(entry.get(key)) ? [str(entry.get(key) ?? null)] : [])))
        .filter((parts) => parts.length > 0)
        .map((parts) => parts.join(': '))
        .join('; ');
    const message = textOf(error.get('message')) || textOf(error.get('code')) || 'the query was refused';
    const rejected = pick(error, top, 'rejected_facts');
    return {
        message: said ? `${message} (${said})` : message,
        rejectedFacts: Array.isArray(rejected)
            ? rejected
            : details.map((entry) => entry.get('field') ?? null).filter((field) => pyTruthy(field)),
    };
}
function aboutPlatform(error) {
    return error !== null && /platform/i.test(summaryOf(error));
}
function aboutCount(error) {
    if (aspectsOf(error).includes('facts'))
        return false;
    if (detailsOf(error).some((entry) => textOf(entry.get('field')).replace(/^body\./, '') === 'queries'))
        return true;
    const message = textOf(error.get('message'));
    return /quer(y|ies)|batch|items/i.test(message) && /too many|at most|maximum|max\b|limit|exceed/i.test(message);
}
function detailsOf(error) {
    const details = error.get('details');
    return Array.isArray(details) ? details.filter(isMap) : [];
}
function pick(error, top, key) {
    return error.get(key) ?? top.get(key) ?? null;
}
function filled(value) {
    return Array.isArray(value) && value.length > 0;
}
/** There, and not null. */
function given(map, key) {
    return (map.get(key) ?? null) !== null;
}
function textOf(value) {
    return typeof value === 'string' ? value : '';
}
function summaryOf(error) {
    const code = textOf(error.get('code')) || 'no code';
    const message = textOf(error.get('message'));
    return message ? `${code}: ${message}` : code;
}
function infrastructure(detail) {
    return { kind: 'infrastructure', detail };
}
const ECHO_DEPTH = 1_000;
function envelopeOf(body, redact) {
    try {
        // An answer echoes what a completion said, which may be as deep as completions are read, and wraps it.
        const read = parseJson(body, { maxDepth: ECHO_DEPTH });
        const value = redact === null ? read : redactValue(read, redact);
        return isMap(value) ? value : null;
    }
    catch {
        return null;
    }
}
/** Seconds or a date; null where it is neither. */
export function retryAfterMs(header, now) {
    if (header === null)
        return null;
    const text = header.trim();
    const seconds = /^\d+(\.\d+)?$/.test(text);
    const waitMs = seconds
        ? Math.ceil(Number(text) * 1000)
        : /^[a-z]{3}/i.test(text)
            ? Date.parse(text) - now
            : Number.NaN;
    return Number.isNaN(waitMs) ? null : Math.min(RETRY_AFTER_MAX_MS, Math.max(0, waitMs));
}
