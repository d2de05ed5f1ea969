// Percentiles of latencies, by the nearest rank.
export function latencyOf(values) {
    const sorted = [...values].sort((a, b) => a - b);
    const at = (share) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), samples: sorted.length };
}
