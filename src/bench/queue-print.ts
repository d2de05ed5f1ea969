// What `farm bench queue` says to people.

import { shown } from './figures.ts';
import { type CpuOfOne, MEMBERS, type QueueBench, ROUNDS } from './queue.ts';
import { GROUP } from './queue-arms.ts';
import { EARLY, type Growth, LATE } from './queue-memory.ts';

export function printQueue({ cores, speed, memory }: QueueBench): string {
  const mega = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(2)} MB`;
  const grown = (name: string, g: Growth): string =>
    `${name.padEnd(10)} ${mega(g.early_bytes)} after ${EARLY} members, ${mega(g.late_bytes)} after ${LATE}: ${g.ratio.toFixed(2)}x (goal: within 10%)`;
  return [
    `${MEMBERS} members of one guess in groups of ${GROUP}, no two alike, beside as many no-ops of plain BullMQ; median of ${ROUNDS} rounds (spread), arms in turn`,
    `on the same ${cores} cores and the same Redis (every answer synced to its file before it is given): plain BullMQ has a producer (addBulk by 1,000) and a worker,`,
    'the farm has a producer, a worker and a collector. N at once: N no-ops of the one worker, N episodes of the other; what the',
    'cores do beside that is free to overlap, in both. The farm is done when shards and manifest are in the store.',
    ...speed.flatMap((s) => [
      `${s.concurrency} at once: farm ${shown(s.farm, 0)} members a second, plain BullMQ ${shown(s.raw, 0)}: ${s.ratio.toFixed(2)}x (goal ${s.ratio_goal}x); until the last group is in results: ${shown(s.closed, 0)}, ${s.closed_ratio.toFixed(2)}x`,
      `  where a group's members act alike: ${shown(s.alike, 0)}, ${s.alike_ratio.toFixed(2)}x`,
      `  CPU for one, in microseconds: farm ${cpu(s.farm_cpu_us)}; alike ${cpu(s.alike_cpu_us)}; plain BullMQ ${cpu(s.raw_cpu_us)}`,
    ]),
    `Redis for a live member: ${Math.round(memory.redis_bytes_per_live_member)} bytes (goal ${memory.goal})`,
    grown('Redis', memory.redis),
    grown('producer', memory.producer),
    grown('collector', memory.collector),
    '',
  ].join('\n');
}

function cpu(one: CpuOfOne): string {
  const parts = Object.entries(one).map(([name, us]) => `${name} ${us.toFixed(0)}`);
  const sum = Object.values(one).reduce((a, b) => a + b, 0);
  return `${parts.join(', ')}, together ${sum.toFixed(0)}`;
}
