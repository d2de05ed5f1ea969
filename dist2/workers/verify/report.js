// The verifier's answer in the one shape the shaper reads: the library's AmberReport, field for field. A missing or
// malformed field degrades to "not certified"; nothing raises. Which answers become a report at all is decided
// in wire.ts: an answer about the infrastructure never does.
import { isMap, pyTruthy } from '../../shared/json/value.js';
import { toFloat } from '../../shared/python/number.js';
import { str } from '../../shared/python/text.js';
/** The version of the explanation that this reading was written for. */
export const SUPPORTED_SCHEMA_VERSION = 1n;
/** Nothing certified, no credit anywhere. */
export function floorReport(reason) {
    return {
        proofChecked: false,
        confidence: 0,
        symbolicConfidence: null,
        neuralConfidence: null,
        answer: null,
        decision: null,
        rules: [],
        rejectedFacts: [],
        factSummary: new Map(),
        decidingRules: [],
        proofSummary: '',
        schemaVersion: null,
        error: reason,
    };
}
/** The report of a successful answer's `data`. */
export function reportFromResult(result) {
    const explanation = mapOf(result.get('explanation'));
    const confidence = mapOf(explanation.get('confidence'));
    const factSummary = new Map();
    for (const [key, count] of mapOf(explanation.get('certified_fact_summary')))
        if (typeof count === 'bigint')
            factSummary.set(key, count);
    const version = explanation.get('schema_version');
    const proofSummary = result.get('proof_summary');
    return {
        proofChecked: pyTruthy(result.get('proof_checked')),
        confidence: toFloat(confidence.get('overall')) ?? 0,
        symbolicConfidence: toFloat(confidence.get('symbolic_confidence')),
        neuralConfidence: toFloat(confidence.get('neural_confidence')),
        answer: result.get('answer') ?? null,
        decision: result.get('decision') ?? null,
        rules: rulesOf(explanation.get('symbolic_trace')),
        rejectedFacts: rejectedFactsOf(explanation.get('rejected_facts')),
        factSummary,
        decidingRules: listOf(mapOf(explanation.get('decision')).get('deciding_rules')).filter(isMap),
        proofSummary: pyTruthy(proofSummary) ? str(proofSummary) : '',
        schemaVersion: typeof version === 'bigint' ? version : null,
        error: null,
    };
}
/** The report of a refusal to certify: closed, with the facts that were rejected. */
export function reportFromDenial(denial) {
    const report = floorReport(denial.message);
    report.rejectedFacts = rejectedFactsOf(denial.rejectedFacts);
    if (report.rejectedFacts.length > 0)
        report.factSummary.set('rejected', BigInt(report.rejectedFacts.length));
    return report;
}
/** The report as JSON, in the library's names and order. */
export function reportToValue(report) {
    return new Map([
        ['proof_checked', report.proofChecked],
        ['confidence', report.confidence],
        ['symbolic_confidence', report.symbolicConfidence],
        ['neural_confidence', report.neuralConfidence],
        ['answer', report.answer],
        ['decision', report.decision],
        ['rules', report.rules.map(ruleToValue)],
        ['rejected_facts', report.rejectedFacts.map(rejectedToValue)],
        ['fact_summary', new Map(report.factSummary)],
        ['deciding_rules', report.decidingRules],
        ['proof_summary', report.proofSummary],
        ['schema_version', report.schemaVersion],
        ['error', report.error],
    ]);
}
function ruleToValue(rule) {
    return new Map([
        ['name', rule.name],
        ['fired', rule.fired],
        ['rule_type', rule.ruleType],
        ['required', rule.required],
        ['reason', rule.reason],
    ]);
}
function rejectedToValue(fact) {
    return new Map([
        ['field', fact.field],
        ['value', fact.value],
        ['reasons', fact.reasons],
    ]);
}
function rulesOf(trace) {
    const rules = [];
    for (const rule of listOf(mapOf(trace).get('rules'))) {
        if (!isMap(rule))
            continue;
        const given = rule.get('rule_name');
        const name = pyTruthy(given) ? given : rule.get('name');
        if (name === undefined || name === null)
            continue;
        rules.push({
            name: str(name),
            fired: pyTruthy(rule.get('fired')),
            ruleType: textOf(rule.get('rule_type')),
            required: pyTruthy(rule.get('required')),
            reason: textOf(rule.get('explanation')),
        });
    }
    return rules;
}
function rejectedFactsOf(rejected) {
    const facts = [];
    for (const item of listOf(rejected)) {
        if (typeof item === 'string')
            facts.push({ field: item, value: null, reasons: [] });
        if (!isMap(item))
            continue;
        const field = item.get('field');
        if (field === undefined || field === null)
            continue;
        facts.push({ field: str(field), value: item.get('value') ?? null, reasons: listOf(item.get('reasons')).map(str) });
    }
    return facts;
}
function mapOf(value) {
    return isMap(value) ? value : new Map();
}
function listOf(value) {
    return Array.isArray(value) ? value : [];
}
function textOf(value) {
    return value === undefined || value === null ? null : str(value);
}
