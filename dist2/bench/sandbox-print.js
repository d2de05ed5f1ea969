// The sandbox benchmark for people.
import { shown } from './figures.js';
export function printSandbox(result) {
    const lines = [];
    const latency = (of) => `p50 ${of.p50.toFixed(1)} ms, p99 ${of.p99.toFixed(1)} ms (${of.samples} of them)`;
    const cpu = (value) => (value === null ? '?' : value.toFixed(1)).padStart(7);
    if (result.rows.length > 0) {
        lines.push(`median of ${result.rounds} rounds (spread), arms interleaved; CPU in ms each: worker and its children, containers, whole machine`, `${'work'.padEnd(20)} ${'arm'.padEnd(21)} wide  ${'per second'.padEnd(26)} ${'p50 ms'.padStart(8)} ${'p99 ms'.padStart(8)} ${'n'.padStart(6)}   CPU: worker  boxes machine`);
        for (const row of result.rows)
            lines.push(`${row.work.padEnd(20)} ${row.arm.padEnd(21)} ${String(row.width).padStart(4)}  ${shown(row.per_s).padEnd(26)} ${row.latency_ms.p50.toFixed(1).padStart(8)} ${row.latency_ms.p99.toFixed(1).padStart(8)} ${String(row.latency_ms.samples).padStart(6)}      ${cpu(row.cpu_ms.worker)}${cpu(row.cpu_ms.containers)} ${cpu(row.cpu_ms.machine)}${row.wrong > 0 ? `  ${row.wrong} WRONG` : ''}`);
    }
    if (result.open_ms !== null)
        lines.push(`opening a box: fresh ${latency(result.open_ms.fresh)}`, `               recycled ${latency(result.open_ms.recycled)}`);
    if (result.step !== null)
        lines.push(`a step (true): asked to answered ${latency(result.step.round_trip_ms)}`, `               beside its command ${latency(result.step.overhead_ms)}`, `               bare, without a box ${latency(result.step.bare_ms)}`);
    for (const one of result.neighbours)
        lines.push(`a neighbour of ${one.hogs} busy box${one.hogs > 1 ? 'es' : ''}: p95 ${one.beside_ms.p95.toFixed(1)} ms, alone ${one.alone_ms.p95.toFixed(1)} ms: ${one.p95_ratio.toFixed(2)}x`);
    if (result.grades !== null) {
        const { count, width, seconds, per_s, wrong, rss_mb } = result.grades;
        lines.push(`${count} grades, ${width} wide, in ${seconds.toFixed(1)} s: ${per_s.toFixed(1)} per second; ${wrong.length} not as labelled${wrong.length > 0 ? ` (${wrong.slice(0, 5).join(', ')}…)` : ''}`, `memory of the worker: ${rss_mb.start} MB at the start, ${rss_mb.middle} in the middle, ${rss_mb.end} at the end, ${rss_mb.peak} at most`);
    }
    for (const goal of result.goals)
        lines.push(`${goal.met ? 'met    ' : 'NOT MET'} ${goal.goal.padEnd(52)} ${goal.got.toFixed(2).padStart(8)}  wanted ${goal.wanted}`);
    lines.push(`containers left: ${result.containers_left}`, ...result.notes, '');
    return lines.join('\n');
}
