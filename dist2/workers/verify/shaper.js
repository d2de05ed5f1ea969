// A report (and a gold label, where there is one) as a bounded reward: the library's default shaper, with its order
// of additions and its clip. Where a number is not finite there is no total: the caller gives the floor and names why.
import { isMap, pyTruthy } from '../../shared/json/value.js';
import { divide } from '../../shared/python/number.js';
import { str, strip } from '../../shared/python/text.js';
import { clipped, shapedSum } from '../../shared/shaped-total.js';
import { unsupportedFraction } from './provenance.js';
import { SUPPORTED_SCHEMA_VERSION } from './report.js';
import { namesRule } from './words.js';
/** Never raises: what the library's shaper would raise on is refused, and earns the floor as there. */
export function shape(config, parsed, report, gold = null, criteriaGold = null) {
    const c = {
        format: 1,
        certified: report.proofChecked ? 1 : 0,
        correctness: correctness(parsed, report, gold),
        graded: graded(report, criteriaGold),
        rejected_penalty: rejectedFraction(report),
        unsupported_penalty: unsupported(config, parsed),
        consistency: consistency(parsed, report),
    };
    if (config.requireSupportedSchema && report.schemaVersion !== SUPPORTED_SCHEMA_VERSION) {
        // Expectations that cannot be read are refused whatever the version.
        if (!Number.isNaN(c.graded))
            c.graded = 0;
        c.consistency = 0;
    }
    const sum = shapedSum((name) => config.weights[name], c);
    const total = clipped(sum, config.clip);
    if (!Number.isFinite(sum) || !Number.isFinite(total))
        return { total: null, components: c, refused: 'the reward is not a finite number' };
    return { total, components: { ...c, total }, refused: null };
}
function correctness(parsed, report, gold) {
    const target = gold ?? report.decision;
    if (parsed.proposedAnswer === null || target === null)
        return 0;
    return plain(parsed.proposedAnswer) === plain(target) ? 1 : 0;
}
function plain(value) {
    return strip(str(value)).toLowerCase();
}
/** Not a number where the expectations are no mapping. Share of the required criteria derived as expected; without expectations, of the rules that fired. */
function graded(report, criteriaGold) {
    if (!report.proofChecked || report.rules.length === 0)
        return 0;
    if (pyTruthy(criteriaGold)) {
        const required = report.rules.filter((rule) => rule.required);
        if (!isMap(criteriaGold))
            return named(criteriaGold, required) ? Number.NaN : 0;
        const criteria = required.filter((rule) => criteriaGold.has(rule.name));
        if (criteria.length === 0)
            return 0;
        const right = criteria.filter((rule) => rule.fired === pyTruthy(criteriaGold.get(rule.name)));
        return clip01(right.length / criteria.length);
    }
    return clip01(report.rules.filter((rule) => rule.fired).length / report.rules.length);
}
// Expectations that are no mapping: whether Python's `name in expectations` would get as far as looking one up.
function named(criteriaGold, required) {
    if (typeof criteriaGold !== 'string' && !Array.isArray(criteriaGold))
        return required.length > 0;
    return required.some((rule) => criteriaGold.includes(rule.name));
}
function rejectedFraction(report) {
    const summary = report.factSummary;
    const emitted = summary.get('emitted') || summary.get('accepted') || 0n;
    const rejected = summary.get('rejected') ?? BigInt(report.rejectedFacts.length);
    if (emitted === 0n)
        return rejected === 0n ? 0 : 1;
    const all = emitted + rejected;
    return all === 0n ? 0 : clip01(divide(rejected, all) ?? Number.NaN);
}
function unsupported(config, parsed) {
    if (!config.provenance || parsed.prompt === null || parsed.facts.size === 0)
        return 0;
    return clip01(unsupportedFraction(parsed.facts, parsed.prompt, config.provenance));
}
/** How far the stated reasoning names the rules that fired, less those it names that did not. */
function consistency(parsed, report) {
    if (!report.proofChecked || !parsed.reasoning)
        return 0;
    const fired = report.rules.filter((rule) => rule.fired);
    if (fired.length === 0)
        return 0;
    const text = parsed.reasoning.toLowerCase();
    const right = fired.filter((rule) => namesRule(rule.name, text)).length;
    const wrong = report.rules.filter((rule) => !rule.fired && namesRule(rule.name, text)).length;
    return clip01((right - wrong) / fired.length);
}
function clip01(x) {
    return clipped(x, [0, 1]);
}
