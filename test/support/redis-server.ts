// A real redis-server of the test's own: a folder, a socket, AOF as in production; gone when the test is over. It can
// be killed under the test and started again on the same folder.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { RedisPlace } from '../../src/shared/redis/connect.ts';

const CONF = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));

export interface TestRedis {
  redis: Redis;
  place: RedisPlace;
  folder: string;
  /** The one that runs now. */
  readonly process: ChildProcess;
  /** `kill -9`; resolves when it is gone. Clients go on trying. */
  kill(): Promise<void>;
  /** Again, on the same folder; resolves when it answers. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** With a `--port` of its own it is reached by that. */
export async function startRedis(...extra: string[]): Promise<TestRedis> {
  const folder = await mkdtemp(path.join(tmpdir(), 'farm-test-redis-'));
  const socket = path.join(folder, 'redis.sock');
  const port = extra.includes('--port') ? Number(extra[extra.indexOf('--port') + 1]) : 0;
  let server = start();

  function start(): { child: ChildProcess; ended: Promise<void> } {
    const child = spawn('redis-server', [CONF, '--port', '0', '--unixsocket', socket, '--dir', folder, ...extra], {
      stdio: 'ignore',
    });
    return { child, ended: new Promise((resolve) => child.once('exit', () => resolve())) };
  }
  const kill = async (): Promise<void> => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  const redis = new Redis({ path: socket, retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await redis.ping();
  return {
    redis,
    place: {
      options: port > 0 ? { host: '127.0.0.1', port } : { path: socket },
      address: 'the test’s Redis',
      embedded: false,
    },
    folder,
    get process() {
      return server.child;
    },
    kill,
    restart: async () => {
      await kill();
      server = start();
      await redis.ping();
    },
    close: async () => {
      redis.disconnect();
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
