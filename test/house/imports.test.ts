// The rules of the house, read off the sources: who may import whom, and which package is known to which file.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));

interface Source {
  file: string;
  room: string;
  text: string;
  /** Files of ours, relative to src. */
  own: string[];
  packages: string[];
}

const sources: Source[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => {
    const text = readFileSync(path.join(SRC, file), 'utf8');
    const names = [...text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g)].map((m) => m[1] as string);
    const own = names.filter((n) => n.startsWith('.')).map((n) => path.normalize(path.join(path.dirname(file), n)));
    const packages = names.filter((n) => !n.startsWith('.') && !n.startsWith('node:'));
    return { file, room: file.split(path.sep)[0] as string, text, own, packages };
  });

/** Rooms that each room may look into: data flows one way. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  shared: ['shared'],
  keeper: ['keeper', 'shared'],
  producer: ['producer', 'shared'],
  workers: ['workers', 'shared'],
  simulator: ['simulator', 'shared'],
  gateway: ['gateway', 'producer', 'workers', 'shared'],
  bench: ['bench', 'producer', 'workers', 'shared'],
  cli: ['cli', 'bench', 'gateway', 'producer', 'workers', 'simulator', 'shared'],
};

const usersOf = (name: string): string[] => sources.filter((s) => s.packages.includes(name)).map((s) => s.file);

describe('the house', () => {
  it('lets each room import only from the rooms before it in the flow', () => {
    const wrong = sources.flatMap((s) =>
      s.own
        .filter((o) => !(MAY_IMPORT[s.room] ?? []).includes(o.split(path.sep)[0] as string))
        .map((o) => `${s.file} -> ${o}`),
    );
    expect(wrong).toEqual([]);
  });

  it('keeps the three kinds of workers apart', () => {
    const kind = (file: string): string | null => /^workers\/(rollout|verify|collect)\//.exec(file)?.[1] ?? null;
    const wrong = sources.flatMap((s) =>
      s.own.filter((o) => kind(s.file) && kind(o) && kind(s.file) !== kind(o)).map((o) => `${s.file} -> ${o}`),
    );
    expect(wrong).toEqual([]);
  });

  it('has no import cycles', () => {
    const graph = new Map(sources.map((s) => [s.file, s.own]));
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (file: string, trail: readonly string[]): void => {
      if (trail.includes(file)) cycles.push([...trail.slice(trail.indexOf(file)), file].join(' -> '));
      else if (!done.has(file)) {
        for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
        done.add(file);
      }
    };
    for (const file of graph.keys()) visit(file, []);
    expect(cycles).toEqual([]);
  });

  it('knows dockerode and Parquet in one file each, BullMQ and the AWS SDK in one beside the benchmarks that measure them, and the environment in one', () => {
    expect(usersOf('dockerode')).toEqual(['workers/rollout/sandbox/engine.ts']);
    expect(usersOf('hyparquet-writer')).toEqual(['cli/parquet-file.ts']);
    expect(usersOf('bullmq')).toEqual(['bench/queue-child.ts', 'shared/queue.ts']);
    expect(usersOf('@aws-sdk/client-s3')).toEqual(['bench/bare-put.ts', 'shared/store/s3-client.ts']);
    expect(sources.filter((s) => s.text.includes('process.env')).map((s) => s.file)).toEqual(['shared/config.ts']);
  });

  it('has no barrels, no utils, no folders by kind', () => {
    const names = sources.flatMap((s) => s.file.split(path.sep));
    expect(names.filter((n) => /^(index\.ts|utils?(\.ts)?|helpers?(\.ts)?|types|interfaces|lib)$/.test(n))).toEqual([]);
  });

  it('says at the head of each file what it is', () => {
    const silent = sources.filter((s) => !/^(#!.*\n)?(\/\/|\/\*)/.test(s.text)).map((s) => s.file);
    expect(silent).toEqual([]);
  });
});
