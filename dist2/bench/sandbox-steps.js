// What a step costs beside the command itself, and what a neighbour feels of a box that does its worst.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { latencyOf } from './percentile.js';
const never = new AbortController().signal;
export async function stepCost(boxes, count) {
    const box = await boxes.driver.open(boxes.limits, boxes.labels, never);
    try {
        const trips = [];
        const overheads = [];
        const bare = [];
        for (let i = -10; i < count; i++) {
            const asked = performance.now();
            const { wallMs } = await box.run({ argv: ['true'], timeoutMs: 10_000, outputBytes: 1024 });
            const trip = performance.now() - asked;
            const alone = await bareTrue();
            if (i < 0)
                continue;
            trips.push(trip);
            overheads.push(Math.max(0, trip - wallMs));
            bare.push(alone);
        }
        return { round_trip_ms: latencyOf(trips), overhead_ms: latencyOf(overheads), bare_ms: latencyOf(bare) };
    }
    finally {
        await box.close();
    }
}
async function bareTrue() {
    const asked = performance.now();
    const child = spawn('true', { stdio: ['ignore', 'pipe', 'pipe'] });
    await once(child, 'close');
    return performance.now() - asked;
}
/** Every process that it may have, all busy, forking and writing. */
const HOG = `
import os
try:
    while os.fork(): pass
except OSError: pass
buffer = bytearray(2**20)
while True:
    for i in range(0, len(buffer), 64): buffer[i] = i & 255`;
/** A step of a well-behaved box alone and beside hogs, turn about. */
export async function neighbours(boxes, hogs, rounds, count) {
    const open = () => boxes.driver.open(boxes.limits, boxes.labels, never);
    const quiet = await open();
    const loud = [];
    try {
        for (let i = 0; i < hogs; i++)
            loud.push(await open());
        const alone = [];
        const beside = [];
        const steps = async (into) => {
            for (let i = 0; i < count; i++) {
                const asked = performance.now();
                await quiet.run({ argv: ['python3', '-c', 'sum(range(10**5))'], timeoutMs: 30_000, outputBytes: 1024 });
                into.push(performance.now() - asked);
            }
        };
        await steps([]);
        for (let round = 0; round < rounds; round++) {
            await steps(alone);
            const ending = new AbortController();
            const busy = loud.map((box) => box
                .run({ argv: ['python3', '-c', HOG], timeoutMs: 60_000, outputBytes: 1024, signal: ending.signal })
                .catch(() => { }));
            await new Promise((resolve) => setTimeout(resolve, 500));
            await steps(beside);
            ending.abort(new Error('enough'));
            await Promise.all(busy);
        }
        const result = { hogs, alone_ms: latencyOf(alone), beside_ms: latencyOf(beside) };
        return { ...result, p95_ratio: result.beside_ms.p95 / result.alone_ms.p95 };
    }
    finally {
        await Promise.all([quiet, ...loud].map((box) => box.close()));
    }
}
