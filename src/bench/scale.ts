// `farm bench scale`: what a member costs in runs of 1,000, 10,000 and 100,000, all of trivial episodes: processor time by
// process, memory of producer, collector and Redis, objects in the store; with one, two and four workers; with the folder
// store and with S3 where there is one. What is done must leave nothing: from size to size a member costs the same.

import { availableParallelism } from 'node:os';
import { type Figure, figureOf } from './figures.ts';
import { GROUP } from './queue-arms.ts';
import { type CpuOfMember, type ScaleArm, type ScaleSample, scaleRun } from './scale-run.ts';
import { storeThroughput } from './store-throughput.ts';

export const SIZES = [1_000, 10_000, 100_000] as const;
const WORKERS = [2, 4] as const;
/** At which workers and stores are compared. */
const MIDDLE = 10_000;
/** A large run is its own average. */
const ROUNDS: readonly [upTo: number, rounds: number][] = [
  [1_000, 5],
  [10_000, 3],
  [Number.POSITIVE_INFINITY, 1],
];
const FLAT_GOAL = 1.1;
const PUTS = { objects: 400, bytes: 4_096, width: 8, rounds: 5 };

export interface ScaleRow extends ScaleArm {
  rounds: number;
  per_s: Figure;
  plain_per_s: Figure;
  /** The farm's over plain BullMQ's. */
  ratio: number;
  cpu_us: CpuOfMember & { all: number | null };
  plain_cpu_us: number | null;
  memory: ScaleSample['memory'];
  redis: ScaleSample['redis'];
  stored: ScaleSample['stored'];
}

/** A figure of one size over the same of another: 1 is flat. */
export interface Flatness {
  what: string;
  from: number;
  to: number;
  ratio: number | null;
  goal: number;
}

export interface ScaleBench {
  cores: number;
  group: number;
  rows: ScaleRow[];
  flat: Flatness[];
  /** Objects of 4 KB a second that the S3 store takes, and what a bare PutObject loop on the same server does. */
  s3_puts: { ours: Figure; bare: Figure; ratio: number } | null;
}

export interface ScaleOptions {
  /** One size in place of the usual ones. */
  members: number | null;
  /** `s3://…`, for the arm with that store; null leaves it out. */
  s3: string | null;
  tell: (line: string) => void;
  signal: AbortSignal;
}

export async function benchScale({ members, s3, tell, signal }: ScaleOptions): Promise<ScaleBench> {
  const arms = armsOf(members, s3 !== null).map((arm) => ({ arm, samples: [] as ScaleSample[] }));
  const most = Math.max(...arms.map(({ arm }) => roundsOf(arm.members)));
  for (let round = 0; round < most; round++) {
    for (const { arm, samples } of arms) {
      if (round >= roundsOf(arm.members)) continue;
      signal.throwIfAborted();
      const store = arm.store === 's3' ? `${s3}/bench-scale-${process.pid}-${round}` : null;
      tell(`${arm.members} members, ${arm.workers} workers, ${arm.store}: round ${round + 1}`);
      samples.push(await scaleRun(arm, store, signal));
    }
  }
  const rows = arms.map(({ arm, samples }) => rowOf(arm, samples));
  const puts = s3 === null ? null : await putsOf(s3, tell);
  return { cores: availableParallelism(), group: GROUP, rows, flat: flatness(rows), s3_puts: puts };
}

async function putsOf(address: string, tell: (line: string) => void): Promise<ScaleBench['s3_puts']> {
  tell('the S3 store beside a bare PutObject loop');
  const { ours, bare } = await storeThroughput(address, PUTS);
  const [farm, plain] = [figureOf('S3 store', ours), figureOf('bare PutObject', bare)];
  return { ours: farm, bare: plain, ratio: farm.median / plain.median };
}

function armsOf(members: number | null, s3: boolean): ScaleArm[] {
  const sizes = members === null ? [...SIZES] : [members];
  const arms: ScaleArm[] = sizes.map((size) => ({ members: size, workers: 1, store: 'folder' }));
  if (members === null) for (const workers of WORKERS) arms.push({ members: MIDDLE, workers, store: 'folder' });
  if (s3) arms.push({ members: members ?? MIDDLE, workers: 1, store: 's3' });
  return arms;
}

function roundsOf(members: number): number {
  return (ROUNDS.find(([upTo]) => members <= upTo) as [number, number])[1];
}

function rowOf(arm: ScaleArm, samples: readonly ScaleSample[]): ScaleRow {
  const middle = (of: (sample: ScaleSample) => number | null): number | null => {
    const values = samples.map(of).filter((value) => value !== null);
    return values.length < samples.length ? null : figureOf('', values).median;
  };
  const sure = (of: (sample: ScaleSample) => number): number => figureOf('', samples.map(of)).median;
  const farm = figureOf(
    'farm',
    samples.map((s) => s.per_s),
  );
  const plain = figureOf(
    'plain BullMQ',
    samples.map((s) => s.plain_per_s),
  );
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
      worker: sure((s) => s.memory.worker),
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

function sumOf(parts: Readonly<Record<string, number | null>>): number | null {
  const values = Object.values(parts);
  return values.includes(null) ? null : values.reduce((sum: number, value) => sum + (value ?? 0), 0);
}

/** Each size over the one before, of those with one worker and the folder store. */
function flatness(rows: readonly ScaleRow[]): Flatness[] {
  const sizes = rows.filter(({ workers, store }) => workers === 1 && store === 'folder');
  const figures: [string, (row: ScaleRow) => number | null][] = [
    ['processor time of a member', (row) => row.cpu_us.all],
    ['memory of the producer', (row) => row.memory.producer],
    ['memory of the collector', (row) => row.memory.collector],
    ['memory of a worker', (row) => row.memory.worker],
    ['memory of Redis, at most', (row) => row.redis.peak],
    ['stored bytes of a member', (row) => row.stored.bytes / row.members],
  ];
  return sizes.slice(1).flatMap((row, i) => {
    const before = sizes[i] as ScaleRow;
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
