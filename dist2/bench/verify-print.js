// What `farm bench verify` prints for people.
import { shown } from './figures.js';
import { printGateway, SAMPLES } from './gateway.js';
import { LATENCY_MS, LIBRARY, QUERIES, ROUNDS, STEP_MS } from './verify.js';
export function printVerify(result) {
    const percent = (x) => `${(x * 100).toFixed(1)}%`;
    const width = Math.max(...result.rows.map((r) => r.arm.length));
    const lines = result.rows.map((r) => `${r.arm.padEnd(width)}  ideal ${String(r.ideal_ms).padStart(4)} ms  took ${shown(r.figure)} ms  ${r.over_ideal.toFixed(2)}x ideal  ${percent(r.share_of_step)} of the step`);
    return [
        `${QUERIES} queries, ${LATENCY_MS} ms a call, ${STEP_MS} ms of other step time; median of ${ROUNDS} rounds (spread), arms interleaved`,
        ...lines,
        `upstream items ${result.upstream.asked}, distinct queries ${result.upstream.distinct}; ${result.cpu_ms_per_query.toFixed(2)} ms of CPU a query`,
        `the gateway by an upstream that answers at once, ${SAMPLES} samples a round:`,
        ...printGateway(result.gateway),
        ...(result.library_samples_per_s === null
            ? []
            : [`${LIBRARY} (batch path, no gateway): ${result.library_samples_per_s.toFixed(0)} samples/s`]),
        ...result.notes,
        '',
    ].join('\n');
}
