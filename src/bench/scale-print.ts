// The scale benchmark for people.

import { shown } from './figures.ts';
import type { ScaleBench, ScaleRow } from './scale.ts';

export function printScale({ cores, group, rows, flat, s3_puts: puts }: ScaleBench): string {
  const mb = (bytes: number | null): string => (bytes === null ? '?' : (bytes / 2 ** 20).toFixed(1));
  const us = (value: number | null): string => (value === null ? '?' : value.toFixed(0)).padStart(5);
  const name = ({ members, workers, store }: ScaleRow): string =>
    `${String(members).padStart(7)} members, ${workers} worker${workers === 1 ? ' ' : 's'}, ${store.padEnd(6)}`;
  const lines = [
    `trivial episodes in groups of ${group}, ${cores} cores; median (spread); each run in processes and on a Redis of its own, arms interleaved`,
    '',
    'members a second, until the manifest is written, and no-ops of plain BullMQ beside it',
    ...rows.map(
      (row) =>
        `${name(row)}  farm ${shown(row.per_s, 0)}, plain ${shown(row.plain_per_s, 0)}: ${row.ratio.toFixed(2)}x  (${row.rounds})`,
    ),
    '',
    'processor time of a member, microseconds: producer, workers, collector, Redis; all (of a no-op of plain BullMQ)',
    ...rows.map(
      ({ cpu_us: cpu, ...row }) =>
        `${name(row as ScaleRow)}  ${us(cpu.producer)} ${us(cpu.workers)} ${us(cpu.collector)} ${us(cpu.redis)}   ${us(cpu.all)} (${us(row.plain_cpu_us).trim()})`,
    ),
    '',
    'memory, MB: producer, collector and a worker afterwards (at most, with code); Redis above its start, at most and afterwards (keys left)',
    ...rows.map(
      ({ memory, redis, ...row }) =>
        `${name(row as ScaleRow)}  producer ${mb(memory.producer)} (${mb(memory.peak_producer)}), collector ${mb(memory.collector)} (${mb(memory.peak_collector)}), worker ${mb(memory.worker)} (${mb(memory.peak_worker)}); Redis ${mb(redis.peak)}, then ${(redis.after / 1024).toFixed(1)} KB (${redis.keys_left})`,
    ),
    '',
    'in the store: objects, bytes of a member',
    ...rows.map(
      (row) =>
        `${name(row)}  ${row.stored.objects} objects, ${(row.stored.bytes / row.members).toFixed(0)} bytes a member`,
    ),
  ];
  if (flat.length > 0) {
    lines.push('', 'from size to size (1 is flat)');
    for (const { what, from, to, ratio, goal } of flat)
      lines.push(
        `${what.padEnd(28)} ${from} to ${to}: ${ratio === null ? '?' : `${ratio.toFixed(2)}x`} (goal: at most ${goal}x)`,
      );
  }
  if (puts !== null)
    lines.push(
      '',
      `puts of 4 KB a second, 8 at once: S3 store ${shown(puts.ours, 0)}, bare PutObject ${shown(puts.bare, 0)}: ${puts.ratio.toFixed(2)}x`,
    );
  return `${lines.join('\n')}\n`;
}
