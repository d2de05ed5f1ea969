// The figures beside what they are to reach (issue 5): each goal with its ratio, whatever it turns out to be.
const atLeast = (goal, got, wanted, unit) => ({
    goal,
    wanted: `>= ${wanted}${unit}`,
    got,
    met: got >= wanted,
});
const atMost = (goal, got, wanted, unit) => ({
    goal,
    wanted: `<= ${wanted}${unit}`,
    got,
    met: got <= wanted,
});
export function goalsOf(rows, taken, step, beside) {
    const goals = [];
    const rate = (work, arm, width) => rows.find((row) => work.test(row.work) && row.arm === arm && row.width === width)?.per_s.median ?? null;
    const compare = (what, work, ours, other, wanted, widths) => {
        for (const width of widths) {
            const [a, b] = [rate(work, ours, width), rate(work, other, width)];
            if (a !== null && b !== null)
                goals.push(atLeast(`${what}, ${width} wide`, a / b, wanted, 'x'));
        }
    };
    const widths = [1, 2, 4, 8];
    compare('grades, recycled, over docker run', /^grade/, 'ours, recycled', 'docker run', 10, widths);
    compare('grades, recycled, over bare subprocess', /^grade/, 'ours, recycled', 'bare subprocess', 0.7, widths);
    compare('grades, warm, over bare subprocess', /^grade/, 'ours, recycled, warm', 'bare subprocess', 1.3, [2]);
    compare('a step (true) over one exec', /^true$/, 'ours, in an open box', 'container + exec', 30, [1]);
    for (const work of ['sql', 'guess', 'http']) {
        const best = rows
            .filter((row) => row.work === work && /^ours(, recycled)?$/.test(row.arm))
            .map((row) => row.per_s.median);
        if (best.length > 0)
            goals.push(atLeast(`${work} episodes, at their best width`, Math.max(...best), 100, '/s'));
    }
    goals.push(atMost('taking a box from the pool, p50', taken.p50, 20, ' ms'), atMost('a step beside its command, p50', step.overhead_ms.p50, 3, ' ms'), atMost('a step beside its command, p99', step.overhead_ms.p99, 15, ' ms'));
    for (const one of beside)
        goals.push(atMost(`a neighbour's p95 beside ${one.hogs} busy box${one.hogs > 1 ? 'es' : ''}`, one.p95_ratio, 1.5, 'x'));
    return goals;
}
