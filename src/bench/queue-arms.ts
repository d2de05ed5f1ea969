// The processes of either arm of `farm bench queue`, each started for a seat, and what they are told: a whole run of the
// farm's, or as many no-ops of plain BullMQ's.

import { type ChildProcess, fork } from 'node:child_process';
import { on, once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { said } from './children.ts';
import type { BenchRedis } from './redis.ts';

export const GROUP = 8;
/** `limits.in_flight` of the runs, its default. */
export const LIVE = 512;
const CHILD = fileURLToPath(new URL('queue-child.js', import.meta.url));

const doneSchema = z.strictObject({ ms: z.number(), doneMs: z.number() });
const markSchema = z.strictObject({ mark: z.int(), heap: z.int() });
const heapSchema = z.strictObject({ heap: z.int() });

export type Part = 'producer' | 'worker' | 'collector' | 'raw-producer' | 'raw-worker';

export class Arms {
  private readonly server: BenchRedis;
  private readonly store: string | null;
  private readonly children: ChildProcess[] = [];
  private runs = 0;

  /** `store`: of the runs; without one a folder beside the Redis. */
  constructor(server: BenchRedis, store: string | null = null) {
    this.server = server;
    this.store = store;
  }

  /** `concurrency`: of a worker; what else a part has takes no part in it. */
  async start(part: Part, realm: string, concurrency: number): Promise<ChildProcess> {
    const { socket, folder } = this.server;
    const child = fork(CHILD, [JSON.stringify({ part, socket, folder, realm, concurrency, store: this.store })], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: ['--expose-gc'],
    });
    this.children.push(child);
    await said(child);
    return child;
  }

  newRun(): string {
    return `bench-${++this.runs}`;
  }

  /** A whole run, from its spec to its last closed group (`ms`) and to its manifest (`doneMs`). */
  async drive(
    producer: ChildProcess,
    run: string,
    members: number,
    alike = false,
    heapAt: number[] = [],
    onMark: (mark: z.infer<typeof markSchema>) => Promise<void> = async () => {},
  ): Promise<z.infer<typeof doneSchema>> {
    // Several may come while one mark is looked at.
    const answers = on(producer, 'message', { close: ['exit'] });
    producer.send({ run, spec: this.spec(members, alike), heapAt });
    for await (const [answer] of answers) {
      const mark = markSchema.safeParse(answer);
      if (!mark.success) return doneSchema.parse(answer);
      await onMark(mark.data);
    }
    throw new Error('the producer of the benchmark ended before its run');
  }

  /** Each member of a group guesses another number, so that no two of its trajectories are equal; or all the same one. */
  private spec(members: number, alike: boolean): string {
    const file = (name: string): string => path.join(this.server.folder, `${name}-${members}${alike ? '-alike' : ''}`);
    const config = { low: 1, high: 10, max_guesses: 4 };
    const groups = Array.from({ length: members / GROUP }, (_, i) => `t${i}`);
    const task = (id: string, seed: number): string => `${JSON.stringify({ id, env: 'guess', seed, config })}\n`;
    const play = (id: string, m: number): string => `${JSON.stringify({ task_id: id, actions: [m + 1] })}\n`;
    writeFileSync(file('tasks'), groups.map(task).join(''));
    writeFileSync(file('plays'), groups.flatMap((id) => Array.from({ length: GROUP }, (_, m) => play(id, m))).join(''));
    const policy = alike ? { kind: 'scripted', actions: [5] } : { kind: 'completions', path: file('plays') };
    const limits = { in_flight: LIVE };
    writeFileSync(
      file('spec'),
      JSON.stringify({ name: 'bench', group_size: GROUP, tasks: file('tasks'), policy, limits }),
    );
    return file('spec');
  }

  end(): void {
    for (const child of this.children.splice(0)) child.kill('SIGKILL');
  }
}

export async function heapOf(child: ChildProcess): Promise<number> {
  const answer = once(child, 'message');
  child.send({ heap: true });
  return heapSchema.parse((await answer)[0]).heap;
}

/** The time from the first job's adding to the last one's end. */
export async function noOps(producer: ChildProcess, worker: ChildProcess, count: number): Promise<number> {
  const ready = said(worker);
  worker.send({ expect: count });
  await ready;
  const over = said(worker);
  const began = performance.now();
  producer.send({ add: count });
  await over;
  return performance.now() - began;
}
