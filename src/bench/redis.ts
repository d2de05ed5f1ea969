// A Redis of a benchmark's own, set as the farm's is, gone with its folder when the benchmark is over.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { missingError } from '../shared/errors.ts';
import type { Redis } from '../shared/redis/client.ts';
import { ask } from '../shared/redis/embedded.ts';
import { infoField } from '../shared/redis/nodes.ts';

const CONF = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));

export class BenchRedis {
  readonly folder: string;
  readonly socket: string;
  private readonly server: ChildProcess;

  private constructor() {
    this.folder = mkdtempSync(path.join(tmpdir(), 'farm-bench-'));
    this.socket = path.join(this.folder, 'redis.sock');
    const args = [CONF, '--port', '0', '--unixsocket', this.socket, '--dir', this.folder];
    this.server = spawn('redis-server', args, { stdio: 'ignore' });
    this.server.on('error', () => {});
  }

  get pid(): number | undefined {
    return this.server.pid;
  }

  static async start(): Promise<BenchRedis> {
    const started = new BenchRedis();
    for (let i = 0; (await ask(started.socket, 'PING', 500)) === null; i++) {
      if (i > 400) {
        await started.close();
        throw missingError('redis_start', 'redis-server did not start', './farm demo installs it');
      }
      await wait(50);
    }
    return started;
  }

  async close(): Promise<void> {
    if (this.server.exitCode === null && this.server.pid !== undefined) {
      const gone = once(this.server, 'exit');
      this.server.kill('SIGKILL');
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Bytes that its data and buffers take. */
export async function usedBy(redis: Redis): Promise<number> {
  return Number(infoField(await redis.info('memory'), 'used_memory'));
}
