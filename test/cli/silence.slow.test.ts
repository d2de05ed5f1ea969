// A Redis that stands still closes no connection: every process that waits for it says so in its log.

import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { TestFarm } from '../support/farm.ts';
import { startRedis } from '../support/redis-server.ts';
import { slowSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

const PATIENCE = { withinMs: 120_000 };

/** Who has said that it waits. */
function waiters(stderr: string): string[] {
  const lines = stderr.split('\n').filter((line) => line.includes('"msg":"waiting for Redis'));
  return [...new Set(lines.map((line) => (JSON.parse(line) as { role: string }).role))].sort();
}

describe('a Redis that stands still', () => {
  it.each([
    ['up', ['up', '--port', '0'], ['collect', 'gateway', 'rollout', 'up', 'verify'], /farm: up on/],
    ['run', ['run'], ['collect', 'rollout', 'run'], /"msg":"attempt"/],
  ])('is waited for by name in every process of %s', async (name, args, roles, ready) => {
    const server = await startRedis();
    const farm = new TestFarm({ REDIS_URL: `unix://${path.join(server.folder, 'redis.sock')}` });
    try {
      const spec = name === 'run' ? [slowSpec(farm, { groups: 400, size: 1, seconds: 1 })] : [];
      const command = farm.start(...args, ...spec);
      await until('it is at work', () => ready.test(command.stderr), PATIENCE);
      // All roles are there: each has announced itself, and a collector has nothing else to say.
      await until(
        'its workers are there',
        async () => (await server.redis.zcard('farm:workers')) >= roles.length - 2,
        PATIENCE,
      );
      server.process.kill('SIGSTOP');
      await until('all say so', () => waiters(command.stderr).join() === roles.join(), PATIENCE).catch(() => {});
      expect(waiters(command.stderr)).toEqual(roles);
      server.process.kill('SIGCONT');
      await until('one says that it answers', () => command.stderr.includes('Redis answers again'), PATIENCE);
      command.signalGroup('SIGTERM');
      command.signalGroup('SIGTERM');
      await command.ended;
      await farm.nothingLeft(PATIENCE);
    } finally {
      server.process.kill('SIGCONT');
      await farm.close();
      await server.close();
    }
  });
});
