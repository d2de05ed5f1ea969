// What a trainer's call comes down to: prompts, completions and metadata side by side, as the Python library's
// adapters hand them to a reward function, and what may come back as numbers. A completion that no adapter can read
// is null here and earns the floor; there it raises, or floors its whole batch.
import { isMap } from '../../shared/json/value.js';
import { toFloat } from '../../shared/python/number.js';
import { str } from '../../shared/python/text.js';
/** A completion as text: a list that begins with a message is the messages' contents, anything else is `str` of it. */
export function flatten(completion) {
    if (!Array.isArray(completion) || !isMap(completion[0]))
        return str(completion);
    if (!completion.every(isMap))
        return null;
    return completion.map((message) => str(message.has('content') ? (message.get('content') ?? null) : '')).join('');
}
/**
 * The rewards that a reward function of somebody else's gave for `count` items: a list of numbers, or of texts that
 * are numbers. Anything else is the floor for all, as in the library; a number that is not finite is the floor for
 * its item alone.
 */
export function rewardsOf(given, count, floor) {
    const items = typeof given === 'string' ? [...given] : isMap(given) ? [...given.keys()] : given;
    const numbers = Array.isArray(items) ? items.map(toFloat) : [null];
    if (numbers.some((number) => number === null))
        return Array.from({ length: count }, () => floor);
    return numbers.map((number) => (Number.isFinite(number) ? number : floor));
}
