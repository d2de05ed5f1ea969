// A user with the rights that infra/redis-user.conf names, and no more: whole runs under it, and what is said of one that
// lacks some.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestFarm } from '../../support/farm.ts';
import { freePort } from '../../support/port.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';
import { quickSpec } from '../../support/run-specs.ts';
import { until } from '../../support/until.ts';
import { expectAccounted, runStatus, succeed } from '../../support/whole-run.ts';

const CONF = fileURLToPath(new URL('../../../infra/redis-user.conf', import.meta.url));
const PASSWORD = 'canary-of-the-user';
const [, name = '', ...rights] =
  readFileSync(CONF, 'utf8')
    .split('\n')
    .find((line) => line.startsWith('user '))
    ?.replace('>CHANGE-ME', `>${PASSWORD}`)
    .split(' ') ?? [];

let server: TestRedis;
let farm: TestFarm;
let port: number;
beforeAll(async () => {
  port = await freePort();
  server = await startRedis('--port', String(port), '--bind', '127.0.0.1');
  await server.redis.call('ACL', 'SETUSER', name, ...rights);
  await server.redis.call('ACL', 'SETUSER', 'weak', ...rights, '-evalsha', '-eval');
  farm = new TestFarm({ REDIS_URL: `redis://${name}:${PASSWORD}@127.0.0.1:${port}` });
});
afterAll(async () => {
  await farm.close();
  await server.close();
});

describe('a user with the rights that are named', () => {
  it('sees runs through: brought, looked at, cancelled, removed, and is refused nothing', async () => {
    await succeed(farm, 'run', quickSpec(farm), '--run-id', 'whole');
    await expectAccounted(farm, 'whole', 12, 4);
    const long = quickSpec(farm, {
      tasks: Array.from({ length: 800 }, (_, i) => ({
        id: `l${i}`,
        env: 'guess',
        config: { low: 1, high: 8, max_guesses: 4 },
      })),
    });
    const command = farm.start('run', long, '--run-id', 'long');
    await until('it is at work', async () => ((await runStatus(farm, 'long'))?.members.accepted ?? 0) > 0, {
      withinMs: 60_000,
    });
    await succeed(farm, 'cancel', 'long');
    await command.ended;
    await succeed(farm, 'runs');
    for (const run of ['whole', 'long']) await succeed(farm, 'rm', run);
    const found = (await farm.run('doctor', '--json')).stdout;
    expect(found).toMatch(/user farm, AOF on/);
    expect(found).not.toContain(PASSWORD);
    const log = (await server.redis.call('ACL', 'LOG')) as unknown[];
    // CONFIG is asked for and not needed.
    expect(log.filter((entry) => !String(entry).includes('config|get'))).toEqual([]);
  });

  it('cannot touch what is not the farm’s', async () => {
    const { redis } = server;
    const dry = (...command: string[]): Promise<unknown> => redis.call('ACL', 'DRYRUN', name, ...command);
    expect(await dry('SET', 'farm:x', '1')).toBe('OK');
    for (const command of [['SET', 'other', '1'], ['FLUSHALL'], ['KEYS', '*'], ['CONFIG', 'GET', '*'], ['SHUTDOWN']])
      expect(String(await dry(...command)), command.join(' ')).toMatch(/no permissions/);
  });
});

it('a user without a right that is needed is told which, and where they stand', async () => {
  const weak = new TestFarm({ REDIS_URL: `redis://weak:${PASSWORD}@127.0.0.1:${port}` });
  try {
    const ended = await weak.run('run', quickSpec(weak));
    expect(ended.code).toBe(3);
    expect(ended.stderr).toMatch(/rights[\s\S]*eval[\s\S]*infra\/redis-user\.conf/);
  } finally {
    await weak.close();
  }
});
