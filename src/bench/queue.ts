// `farm bench queue`: what ledger, window, queue, store and collector cost. Members a second, end to end, of episodes that do
// next to nothing, beside plain BullMQ doing nothing at the same concurrency in the same rounds on the same Redis and the
// same cores; the processor time that each process of either takes for one; and what is held in memory.

import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { cpuMs } from './children.ts';
import { type Figure, figureOf } from './figures.ts';
import { Arms, noOps, type Part } from './queue-arms.ts';
import { type QueueMemory, queueMemory } from './queue-memory.ts';
import { BenchRedis } from './redis.ts';

export const MEMBERS = 16_000;
export const ROUNDS = 5;
const CONCURRENCIES = [16, 64] as const;
const RATIO_GOAL = 0.7;

/** Processor time for one member (or one no-op), by process, in microseconds; the median of the rounds. */
export type CpuOfOne = Record<string, number>;

interface QueueSpeed {
  concurrency: number;
  /** Until all is in the store and the manifest is written. */
  farm: Figure;
  /** Until the last group is closed: it is in the results stream, and its shard is not yet written. */
  closed: Figure;
  /** As `farm`, where the members of a group all act alike: their one content is compressed and kept once. */
  alike: Figure;
  raw: Figure;
  /** `farm` over `raw`. */
  ratio: number;
  closed_ratio: number;
  alike_ratio: number;
  ratio_goal: number;
  farm_cpu_us: CpuOfOne;
  alike_cpu_us: CpuOfOne;
  raw_cpu_us: CpuOfOne;
}

export interface QueueBench {
  cores: number;
  speed: QueueSpeed[];
  memory: QueueMemory;
}

export async function benchQueue(signal: AbortSignal): Promise<QueueBench> {
  const server = await BenchRedis.start();
  const arms = new Arms(server);
  try {
    const speed = [];
    for (const concurrency of CONCURRENCIES) speed.push(await speedAt(concurrency, arms, server, signal));
    return { cores: availableParallelism(), speed, memory: await queueMemory(arms, server) };
  } finally {
    arms.end();
    await server.close();
  }
}

async function speedAt(concurrency: number, arms: Arms, server: BenchRedis, signal: AbortSignal): Promise<QueueSpeed> {
  const seat = (part: Part): Promise<ChildProcess> => arms.start(part, `bench-${concurrency}`, concurrency);
  const [producer, worker, collector] = [await seat('producer'), await seat('worker'), await seat('collector')];
  const [raw, sink] = [await seat('raw-producer'), await seat('raw-worker')];
  const redis = server.pid;
  const parts = { producer: producer.pid, worker: worker.pid, collector: collector.pid, redis };
  const [farmCpu, alikeCpu] = [new CpuOfArm(parts), new CpuOfArm(parts)];
  const rawCpu = new CpuOfArm({ producer: raw.pid, worker: sink.pid, redis });
  const rates = { stored: [] as number[], closed: [] as number[], alike: [] as number[], raw: [] as number[] };
  for (let round = -1; round < ROUNDS; round++) {
    signal.throwIfAborted();
    const { ms, doneMs } = await farmCpu.of(round, () => arms.drive(producer, arms.newRun(), MEMBERS));
    signal.throwIfAborted();
    const alike = await alikeCpu.of(round, () => arms.drive(producer, arms.newRun(), MEMBERS, true));
    signal.throwIfAborted();
    const rawMs = await rawCpu.of(round, () => noOps(raw, sink, MEMBERS));
    // One unmeasured round of each first.
    if (round < 0) continue;
    rates.closed.push((1_000 * MEMBERS) / ms);
    rates.stored.push((1_000 * MEMBERS) / doneMs);
    rates.alike.push((1_000 * MEMBERS) / alike.doneMs);
    rates.raw.push((1_000 * MEMBERS) / rawMs);
  }
  arms.end();
  const farm = figureOf('farm, in the store', rates.stored);
  const closed = figureOf('farm, in the results', rates.closed);
  const alike = figureOf('farm, members alike, in the store', rates.alike);
  const plain = figureOf('plain BullMQ', rates.raw);
  return {
    concurrency,
    farm,
    closed,
    alike,
    raw: plain,
    ratio: farm.median / plain.median,
    closed_ratio: closed.median / plain.median,
    alike_ratio: alike.median / plain.median,
    ratio_goal: RATIO_GOAL,
    farm_cpu_us: farmCpu.one(),
    alike_cpu_us: alikeCpu.one(),
    raw_cpu_us: rawCpu.one(),
  };
}

/** Processor time of an arm's processes over its rounds. */
class CpuOfArm {
  private readonly pids: [string, number | undefined][];
  private readonly rounds: number[][] = [];

  constructor(pids: Record<string, number | undefined>) {
    this.pids = Object.entries(pids);
  }

  async of<T>(round: number, work: () => Promise<T>): Promise<T> {
    const before = this.now();
    const done = await work();
    const after = this.now();
    if (round >= 0) this.rounds.push(after.map((ms, i) => (1_000 * (ms - (before[i] as number))) / MEMBERS));
    return done;
  }

  one(): CpuOfOne {
    return Object.fromEntries(
      this.pids.map(([name], i) => [
        name,
        figureOf(
          '',
          this.rounds.map((r) => r[i] as number),
        ).median,
      ]),
    );
  }

  private now(): number[] {
    return this.pids.map(([, pid]) => cpuMs(pid) ?? Number.NaN);
  }
}
