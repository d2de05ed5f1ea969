// The reward that a verifier's components make: their weighted sum in the library's order, because the order decides the
// last digit, clipped. Shared by the shaper, which makes it, and by verify-run, which makes it again.
/** Names with their signs: penalties are subtracted. */
export const SHAPED = [
    ['format', 1],
    ['certified', 1],
    ['correctness', 1],
    ['graded', 1],
    ['consistency', 1],
    ['rejected_penalty', -1],
    ['unsupported_penalty', -1],
];
/** Before clipping; a component or weight that is missing counts as 0. */
export function shapedSum(weights, components) {
    let sum = 0;
    for (const [name, sign] of SHAPED)
        sum += sign * (weights(name) ?? 0) * (components[name] ?? 0);
    return sum;
}
/** Python's `max(low, min(high, x))`: not a number gives the upper bound, as there. */
export function clipped(x, [low, high]) {
    const bounded = x < high ? x : high;
    return bounded > low ? bounded : low;
}
