// The body of an answer, filled as the real platform fills it: the rules with their firings, the facts with their
// certificates, confidence, decision and derivation; or the error that a verified platform gives instead of a
// decision. Every answer carries `simulated: true`: nothing here was proved.
import { isMap } from '../shared/json/value.js';
import { judge } from './evaluate.js';
/** Null where a platform could not decide. */
const UNDECIDED = ['answer', 'decision', 'outcome', 'permitted', 'proof_checked', 'proof_summary', 'explanation'];
/** The fields that an answer keeps whatever the projection says. */
const ANCHORS = ['platform_id', 'query', 'simulated'];
export function answerQuery(book, query, facts, projection, trouble) {
    const judgement = judge(book, facts);
    if (judgement.kind === 'refused')
        return { status: 503, body: refusal(judgement) };
    const data = spoilt(decided(book, query, judgement), trouble);
    if (projection === null)
        return { status: 200, body: data };
    const kept = [...data].filter(([key]) => projection.includes(key) || ANCHORS.includes(key));
    return { status: 200, body: new Map(kept) };
}
/** What changes an answer before it is projected, as everything does that a platform decides. */
function spoilt(data, trouble) {
    if (trouble === 'unavailable') {
        data.set('status', 'unavailable');
        for (const key of UNDECIDED)
            data.set(key, null);
    }
    const explanation = data.get('explanation');
    if (trouble === 'wrong_schema_version' && isMap(explanation))
        explanation.set('schema_version', 99n);
    return data;
}
function map(entries) {
    return new Map(Object.entries(entries));
}
function refusal(refused) {
    const details = refused.rejected
        .map((fact) => ({ field: fact.field, message: fact.reasons.join('; ') }))
        .concat(refused.missing.map((field) => ({ field, message: 'the fact is missing' })));
    return map({
        code: 'service_unavailable',
        message: 'The query could not be certified: no decision is given.',
        details: details.map(map),
        rejected_facts: refused.rejected.map((fact) => map({ field: fact.field, value: fact.value, reasons: fact.reasons })),
        missing_atoms: refused.missing,
        deciding_rule: refused.deciding,
        stalled_stage: refused.stage,
        simulated: true,
    });
}
function decided(book, query, judgement) {
    const { decision, facts } = judgement;
    const rules = ruleTrace(book, judgement);
    const fired = rules.filter((rule) => rule.get('fired') === true);
    const proofSummary = `Simulated, not proved: ${fired.length} rule(s) fired, ${judgement.derived.size} fact(s) derived from ${facts.length} input fact(s).`;
    const explanation = map({
        certified_fact_summary: map({
            accepted: BigInt(facts.length),
            emitted: BigInt(facts.length),
            rejected: 0n,
            witness_invalid: 0n,
        }),
        certified_facts: facts.map((fact) => certified(book, fact)),
        rejected_facts: [],
        combination: map({ description: 'Rules decide; there is no neural part.', method: 'symbolic_override' }),
        confidence: confidence(fired.length),
        decision: map({
            deciding_rules: [map({ rule: decision.rule, reason: decision.description })],
            decision: decision.decision,
        }),
        proof: proof(judgement, fired),
        proof_checked: true,
        proof_summary: proofSummary,
        query,
        schema_version: 1n,
        symbolic_trace: map({
            description: 'Rules evaluated against the facts of the query',
            rules,
            rules_evaluated: BigInt(rules.length),
            rules_fired: BigInt(fired.length),
        }),
        vocabulary_declared: true,
    });
    return map({
        answer: `**Decision: ${decision.decision}** (${decision.rule})`,
        decision: decision.decision,
        outcome: decision.permits === null ? null : decision.permits ? 'permit' : 'deny',
        permitted: decision.permits,
        status: 'decided',
        platform_id: BigInt(book.platform_id),
        query,
        proof_checked: true,
        proof_summary: proofSummary,
        vocabulary_declared: true,
        explanation,
        simulated: true,
    });
}
function ruleTrace(book, judgement) {
    const firings = judgement.firings.map((firing, i) => ruleEntry(firing, i));
    const list = book.decisions.map((entry, i) => decisionEntry(entry, entry === judgement.decision, book.rules.length + i));
    return [...firings, ...list];
}
function ruleEntry({ rule, fired }, index) {
    return entry(rule.name, rule.type, rule.type === 'derive' ? 'derive' : null, fired, rule.type === 'require' || rule.type === 'deny', rule.description, index);
}
function decisionEntry(decision, fired, index) {
    return entry(decision.rule, decision.when ? 'constraint' : 'inference', 'decide', fired, decision.permits === false, decision.description, index);
}
function entry(name, type, action, fired, required, description, index) {
    return map({
        action_type: fired ? action : null,
        explanation: fired
            ? `Rule '${name}' fired${description ? `: ${description}` : ''}`
            : `Rule '${name}' did not match`,
        fired,
        required,
        rule_id: BigInt(index + 1),
        rule_name: name,
        rule_type: type,
    });
}
function certified(book, fact) {
    const type = book.fields.find((field) => field.name === fact.field)?.type;
    return map({
        certificate: map({
            embedding_score: null,
            extraction: map({ method: 'client_supplied', span: null }),
            schema_witness: map({
                declared: true,
                dtype: type === 'number' ? 'float' : type === 'bool' ? 'bool' : 'str',
                field: fact.field,
                in_domain: true,
            }),
            source: 'client',
            source_node: null,
        }),
        confidence: fact.confidence,
        field: fact.field,
        reasons: [],
        schema_ok: true,
        source: 'client',
        source_node: null,
        value: fact.value,
        witness_invalid: false,
    });
}
function confidence(fired) {
    const symbolic = Math.min(fired / 3, 1);
    return map({
        explanation: `${fired} rule(s) fired.`,
        methodology: 'Simulated: min(rules fired / 3, 1); there is no neural part.',
        neural_confidence: null,
        neural_weight: 0,
        overall: symbolic,
        symbolic_confidence: symbolic,
        symbolic_normaliser: 3n,
        symbolic_weight: 1,
    });
}
function proof(judgement, fired) {
    const inputs = new Map(judgement.facts.map((fact) => [fact.field, fact.value]));
    const by = new Map(judgement.firings.map(({ rule }) => [rule.field, rule.name]));
    return map({
        derived: [...judgement.derived].map(([field, value]) => map({ by: by.get(field) ?? null, field, stratum: 1n, value })),
        facts: new Map([...inputs, ...judgement.derived]),
        firings: fired.map((rule) => map({ action: rule.get('action_type') ?? null, rule: rule.get('rule_name') ?? null, stratum: 1n })),
        inputs,
    });
}
