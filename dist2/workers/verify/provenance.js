// Whether the asserted facts can be found in the prompt: the library's substring checker. It judges only what a
// substring can show; flags, lists and nulls are exempt.
import { floatRepr } from '../../shared/json/json.js';
import { strip } from '../../shared/python/text.js';
import { hasNumber, hasWord } from './words.js';
/** The share of the facts that can be judged and are not in the prompt. */
export function unsupportedFraction(facts, prompt, options = {}) {
    const text = options.caseSensitive ? prompt : prompt.toLowerCase();
    let judged = 0;
    let missing = 0;
    for (const value of facts.values()) {
        const found = grounded(value, text, options);
        if (found === null)
            continue;
        judged++;
        if (!found)
            missing++;
    }
    return judged === 0 ? 0 : missing / judged;
}
function grounded(value, text, options) {
    if (typeof value === 'boolean')
        return options.checkBooleans ? hasWord(text, value ? 'true' : 'false') : null;
    if (typeof value === 'bigint')
        return hasNumber(text, value.toString());
    if (typeof value === 'number')
        return hasNumber(text, Number.isInteger(value) ? BigInt(value).toString() : floatRepr(value));
    if (typeof value !== 'string')
        return null;
    const needle = options.caseSensitive ? strip(value) : strip(value).toLowerCase();
    return needle === '' ? null : text.includes(needle);
}
