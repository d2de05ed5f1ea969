// Percentiles of latencies, by the nearest rank.

export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  samples: number;
}

export function latencyOf(values: readonly number[]): Latency {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), samples: sorted.length };
}
