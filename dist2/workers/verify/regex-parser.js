// `key: value` lines inside the decision block, for models that do not write strict JSON. The library's own patterns
// are a scan in linear time. Those of a config meet text that the policy chose, so a match has a time limit: a
// completion on which a pattern runs away is unreadable, not a stalled worker.
import { PatternFault, translatePattern } from '../../shared/python/regex.js';
import { parseFloatText, parseInteger, strip } from '../../shared/python/text.js';
import { ANSWER_PATTERN, FACT_PATTERN } from '../../shared/spec/verifier-config.js';
import { answerLine, factLines } from './fact-lines.js';
import { matchHere, matchInThread } from './match-thread.js';
/** What a pattern may take on one completion. */
const MATCH_LIMIT_MS = 100;
/** A match that took too long is tried once more with this: on a busy machine it may have waited for its turn only. */
const SECOND_LIMIT_MS = 1_000;
/** Once the completions of a call have lost so much, the rest of them get one short try. */
const OVERRUN_BUDGET_MS = 3_000;
const SHORT_LIMIT_MS = 50;
/** Null where there are no facts, or where the library raises or would not come back. */
export function readFacts(patterns, block) {
    try {
        const steps = reading(patterns, block);
        let step = steps.next();
        while (!step.done)
            step = steps.next(matchHere({ ...step.value, limitMs: SECOND_LIMIT_MS }));
        return step.value;
    }
    catch (error) {
        if (error instanceof PatternFault)
            return null;
        throw error;
    }
}
/** The same with the config's own patterns in another thread. */
export async function readFactsAside(patterns, block, overruns) {
    try {
        const steps = reading(patterns, block);
        let step = steps.next();
        while (!step.done)
            step = steps.next(await matchAside(step.value, overruns));
        return step.value;
    }
    catch (error) {
        if (error instanceof PatternFault)
            return null;
        throw error;
    }
}
async function matchAside(request, overruns) {
    const limits = overruns.ms < OVERRUN_BUDGET_MS ? [MATCH_LIMIT_MS, SECOND_LIMIT_MS] : [SHORT_LIMIT_MS];
    for (const limitMs of limits) {
        const matches = await matchInThread({ ...request, limitMs });
        if (matches !== null)
            return matches;
        overruns.ms += limitMs;
    }
    return null;
}
// Yields what is to be matched, and goes on with the matches.
function* reading(patterns, block) {
    const pairs = patterns.factPattern === FACT_PATTERN ? factLines(block) : yield* ownFacts(patterns, block);
    if (pairs === null || pairs.length === 0)
        return null;
    const facts = new Map();
    for (const [name, value] of pairs)
        facts.set(name, coerce(value));
    if (patterns.answerPattern === ANSWER_PATTERN) {
        const found = answerLine(block);
        return { facts, answer: found === null ? null : strip(found) };
    }
    const found = yield wanted(compiled(patterns.answerPattern), block, false);
    if (found === null)
        return null;
    const first = found[0];
    if (first === undefined)
        return { facts, answer: null };
    return first[1] === undefined ? null : { facts, answer: strip(first[1]) };
}
function* ownFacts(patterns, block) {
    const fact = compiled(patterns.factPattern);
    const matches = yield wanted(fact, block, true);
    if (matches === null)
        return null;
    const pairs = [];
    for (const match of matches) {
        // `findall` gives the groups, or the one group's (or the whole match's) text, which then unpacks by character.
        const pair = fact.groups >= 2 ? match.slice(1).map((x) => x ?? '') : [...((fact.groups === 1 ? match[1] : match[0]) ?? '')];
        if (pair.length !== 2)
            return null;
        pairs.push(pair);
    }
    return pairs;
}
function wanted(pattern, text, all) {
    return { source: pattern.regexp.source, flags: pattern.regexp.flags, text, all };
}
function coerce(raw) {
    const text = strip(raw);
    const low = text.toLowerCase();
    if (low === 'true' || low === 'false')
        return low === 'true';
    return parseInteger(text) ?? parseFloatText(text) ?? text;
}
const cache = new Map();
function compiled(source) {
    let pattern = cache.get(source);
    if (!pattern) {
        pattern = translatePattern(source);
        if (cache.size >= 64)
            cache.clear();
        cache.set(source, pattern);
    }
    return pattern;
}
