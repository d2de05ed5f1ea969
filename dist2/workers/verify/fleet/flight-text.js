// What travels between processes: a query, and an answer that may be kept. Lossless JSON, since numbers keep their type
// and text. The answer is stored without the query that the platform echoes.
import { dumpJson, parseJson } from '../../../shared/json/json.js';
import { isMap } from '../../../shared/json/value.js';
export function writeQuery(query) {
    return dumpJson([query.query, query.facts, query.relations, query.predictions], { compact: true });
}
export function readQuery(text) {
    const [query, facts, relations, predictions] = parseJson(text);
    return { query, facts, relations, predictions };
}
export function writeAnswer(answer) {
    const { kind } = answer;
    const parts = kind === 'verdict' ? answer.data : [answer.denial.message, answer.denial.rejectedFacts];
    return dumpJson([kind, parts], { compact: true });
}
/** Null for what is none of ours. */
export function readAnswer(text) {
    const value = parseJson(text);
    if (!Array.isArray(value))
        return null;
    const [kind, parts] = value;
    if (kind === 'verdict' && isMap(parts))
        return { kind, data: parts };
    if (kind !== 'denial' || !Array.isArray(parts))
        return null;
    const [message, rejectedFacts] = parts;
    return typeof message === 'string' ? { kind, denial: { message, rejectedFacts: rejectedFacts ?? null } } : null;
}
