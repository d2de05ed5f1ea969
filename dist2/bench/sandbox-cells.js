// One cell: an arm at one kind of work and one width, for a stretch of time in every round. Rounds go over all cells, so that a
// noisy minute hits all alike; the rate and the processor time are medians over rounds, latencies are of all of them.
import { cpuNow, cpuSince } from './cpu.js';
import { figureOf } from './figures.js';
import { latencyOf } from './percentile.js';
export const tallyOf = (cell) => ({ cell, rates: [], latencies: [], cpu: [], wrong: [] });
/** One stretch of a cell, with slots of its own that are there before the clock starts. */
export async function stretch(tally, order, ms, counts) {
    const { work, arm, width } = tally.cell;
    const slots = [];
    try {
        const itemAt = (at) => work.items[(order[at % order.length] ?? 0) % work.items.length];
        for (let i = 0; i < width; i++)
            slots.push(await arm.slot(itemAt(0)));
        for (const slot of slots)
            await slot.ready?.();
        let next = 0;
        const latencies = [];
        const cpu = cpuNow();
        const began = performance.now();
        const loop = async (slot) => {
            do {
                const item = itemAt(next++);
                const asked = performance.now();
                if (!(await slot.play(item)))
                    tally.wrong.push(item.id);
                latencies.push(performance.now() - asked);
            } while (performance.now() - began < ms);
        };
        await Promise.all(slots.map(loop));
        const took = performance.now() - began;
        if (!counts)
            return;
        const used = cpuSince(cpu);
        const each = (value) => (value === null ? null : value / latencies.length);
        tally.rates.push((latencies.length / took) * 1000);
        tally.latencies.push(...latencies);
        tally.cpu.push({
            workerMs: used.workerMs / latencies.length,
            containersMs: each(used.containersMs),
            machineMs: each(used.machineMs),
        });
    }
    finally {
        for (const slot of slots)
            await slot.close();
    }
}
export function rowOf({ cell, rates, latencies, cpu, wrong }) {
    const middle = (values) => {
        const known = values.filter((value) => value !== null);
        return known.length === 0 ? null : figureOf('', known).median;
    };
    return {
        work: cell.work.name,
        arm: cell.arm.name,
        width: cell.width,
        per_s: figureOf(cell.arm.name, rates),
        latency_ms: latencyOf(latencies),
        cpu_ms: {
            worker: middle(cpu.map((one) => one.workerMs)),
            containers: middle(cpu.map((one) => one.containersMs)),
            machine: middle(cpu.map((one) => one.machineMs)),
        },
        wrong: wrong.length,
    };
}
