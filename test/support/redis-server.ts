// A real redis-server of the test's own: a folder, a socket, AOF as in production; gone when the test is over.

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
  process: ChildProcess;
  close(): Promise<void>;
}

export async function startRedis(...extra: string[]): Promise<TestRedis> {
  const folder = await mkdtemp(path.join(tmpdir(), 'farm-test-redis-'));
  const socket = path.join(folder, 'redis.sock');
  const child = spawn('redis-server', [CONF, '--port', '0', '--unixsocket', socket, '--dir', folder, ...extra], {
    stdio: 'ignore',
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const redis = new Redis({ path: socket, retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await redis.ping();
  return {
    redis,
    place: { options: { path: socket }, address: 'the test’s Redis', embedded: false },
    folder,
    process: child,
    close: async () => {
      redis.disconnect();
      child.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
