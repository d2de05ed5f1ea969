// `farm bench scale`: what a member costs in runs of 1,000, 10,000 and 100,000, all of trivial episodes: processor time by
// process, memory of producer, collector and Redis, objects in the store; with one, two and four workers; with the folder
// store and with S3 where there is one. What is done must leave nothing: from size to size a member costs the same.
import { availableParallelism } from 'node:os';
import { figureOf } from './figures.js';
import { GROUP } from './queue-arms.js';
import { scaleRun } from './scale-run.js';
export const SIZES = [1_000, 10_000, 100_000];
const WORKERS = [2, 4];
/** At which workers and stores are compared. */
const MIDDLE = 10_000;
/** A large run is its own average. */
const ROUNDS = [
    [1_000, 5],
    [10_000, 3],
    [Number.POSITIVE_INFINITY, 1],
];
const FLAT_GOAL = 1.1;
export async function benchScale({ members, s3, tell, signal }) {
    const arms = armsOf(members, s3 !== null).map((arm) => ({ arm, samples: [] }));
    const most = Math.max(...arms.map(({ arm }) => roundsOf(arm.members)));
    for (let round = 0; round < most; round++) {
        for (const { arm, samples } of arms) {
            if (round >= roundsOf(arm.members))
                continue;
            signal.throwIfAborted();
            const store = arm.store === 's3' ? `${s3}/bench-scale-${process.pid}-${round}` : null;
            tell(`${arm.members} members, ${arm.workers} workers, ${arm.store}: round ${round + 1}`);
            samples.push(await scaleRun(arm, store, signal));
        }
    }
    const rows = arms.map(({ arm, samples }) => rowOf(arm, samples));
    return { cores: availableParallelism(), group: GROUP, rows, flat: flatness(rows) };
}
function armsOf(members, s3) {
    const sizes = members === null ? [...SIZES] : [members];
    const arms = sizes.map((size) => ({ members: size, workers: 1, store: 'folder' }));
    if (members === null)
        for (const workers of WORKERS)
            arms.push({ members: MIDDLE, workers, store: 'folder' });
    if (s3)
        arms.push({ members: members ?? MIDDLE, workers: 1, store: 's3' });
    return arms;
}
function roundsOf(members) {
    return ROUNDS.find(([upTo]) => members <= upTo)[1];
}
function rowOf(arm, samples) {
    const middle = (of) => {
        const values = samples.map(of).filter((value) => value !== null);
        return values.length < samples.length ? null : figureOf('', values).median;
    };
    const sure = (of) => figureOf('', samples.map(of)).median;
    const farm = figureOf('farm', samples.map((s) => s.per_s));
    const plain = figureOf('plain BullMQ', samples.map((s) => s.plain_per_s));
    return {
        ...arm,
        rounds: samples.length,
        per_s: farm,
        plain_per_s: plain,
        ratio: farm.median / plain.median,
        cpu_us: {
            producer: middle((s) => s.cpu_us.producer),
            workers: middle((s) => s.cpu_us.workers),
            collector: middle((s) => s.cpu_us.collector),
            redis: middle((s) => s.cpu_us.redis),
            all: middle((s) => sumOf(s.cpu_us)),
        },
        plain_cpu_us: middle((s) => sumOf(s.plain_cpu_us)),
        memory: {
            producer: sure((s) => s.memory.producer),
            collector: sure((s) => s.memory.collector),
            peak_producer: middle((s) => s.memory.peak_producer),
            peak_collector: middle((s) => s.memory.peak_collector),
            peak_worker: middle((s) => s.memory.peak_worker),
        },
        redis: {
            peak: sure((s) => s.redis.peak),
            after: sure((s) => s.redis.after),
            keys_left: sure((s) => s.redis.keys_left),
        },
        stored: { objects: sure((s) => s.stored.objects), bytes: sure((s) => s.stored.bytes) },
    };
}
function sumOf(parts) {
    const values = Object.values(parts);
    return values.includes(null) ? null : values.reduce((sum, value) => sum + (value ?? 0), 0);
}
/** Each size over the one before, of those with one worker and the folder store. */
function flatness(rows) {
    const sizes = rows.filter(({ workers, store }) => workers === 1 && store === 'folder');
    const figures = [
        ['processor time of a member', (row) => row.cpu_us.all],
        ['memory of the producer', (row) => row.memory.producer],
        ['memory of the collector', (row) => row.memory.collector],
        ['memory of Redis, at most', (row) => row.redis.peak],
        ['stored bytes of a member', (row) => row.stored.bytes / row.members],
    ];
    return sizes.slice(1).flatMap((row, i) => {
        const before = sizes[i];
        return figures.map(([what, of]) => {
            const [a, b] = [of(before), of(row)];
            return {
                what,
                from: before.members,
                to: row.members,
                ratio: a === null || b === null ? null : b / a,
                goal: FLAT_GOAL,
            };
        });
    });
}
