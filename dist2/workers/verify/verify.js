// Completions to rewards through a verifier: parse, ask, report, shape. What a completion contains earns something,
// always; what the verifier's side does wrong is no result, and never shaped. The library shapes its floor reports,
// which then earn more than a certified wrong answer.
import { isMap } from '../../shared/json/value.js';
import { str } from '../../shared/python/text.js';
import { cacheKey } from './cache-key.js';
import { allFinite } from './finite.js';
import { parseCompletionAside } from './parser.js';
import { reportFromDenial, reportFromResult } from './report.js';
import { shape } from './shaper.js';
import { breathe } from './turns.js';
/** One result an item, in order. */
export async function verifyCompletions(config, items, deps) {
    const read = [];
    const overruns = { ms: 0 };
    for (const item of items) {
        read.push(await readItem(config, item, overruns));
        await breathe();
    }
    const kept = config.cache ? deps.cache : undefined;
    const wanted = new Map();
    for (const one of read)
        if (one.key !== null && one.parsed && !kept?.has(one.key))
            wanted.set(one.key, one.parsed);
    const keys = [...wanted.keys()].slice(0, deps.budget ? deps.budget(wanted.size) : wanted.size);
    const given = keys.length > 0 ? await deps.ask(keys.map((key) => wanted.get(key))) : [];
    const answers = new Map(keys.map((key, i) => [key, given[i]]));
    for (const [key, answer] of answers)
        if (kept && (answer.kind === 'verdict' || answer.kind === 'denial'))
            kept.set(key, answer);
    const fresh = new Set(keys);
    const results = [];
    for (const [i, one] of read.entries()) {
        const answer = one.key === null ? undefined : (answers.get(one.key) ?? kept?.get(one.key));
        const cached = one.key !== null && (!fresh.delete(one.key) || answer?.cached === true);
        results.push(resultOf(config, items[i], one, answer, cached));
        await breathe();
    }
    return results;
}
async function readItem(config, item, overruns) {
    const completion = textOf(item.completion);
    if (completion === null)
        return { parsed: null, key: null, unreadable: 'the completion is no text' };
    const parsed = await parseCompletionAside(config.parser, textOf(item.prompt), completion, overruns);
    if ('unreadable' in parsed)
        return { parsed: null, key: null, unreadable: parsed.unreadable };
    await breathe();
    if (![parsed.facts, parsed.relations, parsed.proposedAnswer].every(allFinite))
        return { parsed: null, key: null, unreadable: 'the completion asserts a number that is not finite' };
    return { parsed, key: cacheKey(config.platformId, parsed), unreadable: '' };
}
function resultOf(config, item, read, answer, cached) {
    if (read.key === null)
        return floor(config, read, read.unreadable);
    if (!answer)
        return { status: 'no_result', cause: 'budget', detail: 'the run may not ask more queries' };
    if (answer.kind === 'unavailable')
        return {
            status: 'no_result',
            cause: 'verifier_unavailable',
            detail: answer.detail,
            ...(answer.held ? { held: true } : {}),
        };
    if (answer.kind === 'misconfigured')
        return { status: 'no_result', cause: 'misconfigured', detail: answer.detail };
    if (answer.kind === 'budget')
        return { status: 'no_result', cause: 'budget', detail: answer.detail };
    if (answer.kind === 'unreadable')
        return floor(config, read, 'the query is larger than the verifier reads');
    const report = answer.kind === 'verdict' ? reportFromResult(answer.data) : reportFromDenial(answer.denial);
    const metadata = isMap(item.metadata) ? item.metadata : new Map();
    const parsed = read.parsed;
    const gold = metadata.get('gold') ?? null;
    const shaped = shape(config, parsed, report, gold, metadata.get('criteria_gold') ?? null);
    if (shaped.total === null)
        return { ...floor(config, read, shaped.refused ?? ''), report, cached };
    return {
        status: 'completed',
        reward: shaped.total,
        components: shaped.components,
        parsed,
        report,
        cacheKey: read.key,
        cached,
        floored: null,
    };
}
function floor(config, read, floored) {
    const { parsed, key } = read;
    return {
        status: 'completed',
        reward: config.floor,
        components: {},
        parsed,
        report: null,
        cacheKey: key,
        cached: false,
        floored,
    };
}
/** Text, or the contents of a list of messages; null for anything else, which is then unreadable. */
function textOf(value) {
    if (typeof value === 'string')
        return value;
    if (!Array.isArray(value) || value.length === 0 || !value.every(isMap))
        return null;
    return value.map((message) => str(message.has('content') ? (message.get('content') ?? null) : '')).join('');
}
