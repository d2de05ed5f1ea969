// Figures of a benchmark: several rounds of every arm, interleaved so that a noisy minute hits all alike; median and spread.
/** One unmeasured round of each arm first. Aborted, it ends with the signal's reason after the round that is at work. */
export async function measure(arms, rounds, signal) {
    const values = arms.map(() => []);
    for (let r = -1; r < rounds; r++) {
        for (const [i, arm] of arms.entries()) {
            signal.throwIfAborted();
            const value = await arm.round();
            if (r >= 0)
                values[i]?.push(value);
        }
    }
    return arms.map((arm, i) => figureOf(arm.name, values[i] ?? []));
}
export function figureOf(arm, values) {
    const sorted = [...values].sort((a, b) => a - b);
    const middle = sorted.length >> 1;
    const median = sorted.length % 2 === 1
        ? sorted[middle]
        : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
    return {
        arm,
        median: median ?? Number.NaN,
        min: sorted[0] ?? Number.NaN,
        max: sorted.at(-1) ?? Number.NaN,
        rounds: sorted.length,
    };
}
/** `54.2 (52.9 to 60.1)` */
export function shown(figure, digits = 1) {
    return `${figure.median.toFixed(digits)} (${figure.min.toFixed(digits)} to ${figure.max.toFixed(digits)})`;
}
