// Judges the facts of one query by a rulebook: which are rejected and why, which rules fire, which decision follows.
// A query with a rejected or a missing fact has no decision, as on a verified platform. Pure.
import { floatRepr } from '../shared/json/json.js';
import { isMap } from '../shared/json/value.js';
export function judge(book, given) {
    const facts = [...given].map(([name, value]) => readFact(book, name, value));
    const rejected = facts.filter((fact) => fact.reasons.length > 0);
    if (rejected.length > 0)
        return refused(rejected, [], null, 'fact_certification');
    const missing = book.fields.filter((field) => !given.has(field.name)).map((field) => field.name);
    if (missing.length > 0)
        return refused([], missing, null, 'grounding');
    const known = new Map();
    for (const fact of facts)
        known.set(fact.field, scalarOf(book, fact));
    const derived = new Map();
    const firings = book.rules.map((rule) => {
        const fired = holds(rule.when, known);
        if (rule.field !== undefined) {
            known.set(rule.field, fired);
            derived.set(rule.field, fired);
        }
        return { rule, fired };
    });
    const broken = firings.find(({ rule, fired }) => (rule.type === 'require' && !fired) || (rule.type === 'deny' && fired));
    if (broken)
        return refused([], [], broken.rule.name, 'obligations');
    const decision = book.decisions.find((entry) => entry.when === undefined || holds(entry.when, known));
    return { kind: 'decided', facts, firings, derived, decision };
}
function refused(rejected, missing, deciding, stage) {
    return { kind: 'refused', rejected, missing, deciding, stage };
}
/** A fact is a bare scalar, or one with a confidence. */
function readFact(book, name, given) {
    const wrapped = isMap(given) && given.has('value');
    const value = wrapped ? (given.get('value') ?? null) : given;
    const confidence = wrapped ? Number(given.get('confidence') ?? 1) : 1;
    const field = book.fields.find((one) => one.name === name);
    const reasons = [];
    if (!field)
        reasons.push('the field is not declared');
    else {
        const fault = domainFault(field, value);
        if (fault)
            reasons.push(fault);
        if (!(confidence >= book.min_confidence && confidence <= 1))
            reasons.push(`the confidence is below ${floatRepr(book.min_confidence)}`);
    }
    return { field: name, value, confidence, reasons };
}
function domainFault(field, value) {
    if (field.type === 'bool')
        return typeof value === 'boolean' || value === 0n || value === 1n ? null : 'not true or false';
    if (field.type === 'text')
        return typeof value === 'string' && field.values.includes(value) ? null : `not one of ${field.values.join(', ')}`;
    if (typeof value !== 'bigint' && typeof value !== 'number')
        return 'not a number';
    const number = Number(value);
    return number >= field.min && number <= field.max ? null : `outside ${field.min} to ${field.max}`;
}
function scalarOf(book, fact) {
    const bool = book.fields.find((field) => field.name === fact.field)?.type === 'bool';
    if (bool)
        return fact.value === true || fact.value === 1n;
    return typeof fact.value === 'bigint' ? Number(fact.value) : fact.value;
}
function holds(when, known) {
    if ('all' in when)
        return when.all.every((one) => holds(one, known));
    if ('any' in when)
        return when.any.some((one) => holds(one, known));
    if ('not' in when)
        return !holds(when.not, known);
    const value = known.get(when.field);
    if (when.op === 'in')
        return Array.isArray(when.value) && when.value.includes(value);
    if (when.op === 'eq')
        return value === when.value;
    if (when.op === 'ne')
        return value !== when.value;
    const x = Number(value);
    const y = Number(when.value);
    return when.op === 'lt' ? x < y : when.op === 'le' ? x <= y : when.op === 'gt' ? x > y : x >= y;
}
