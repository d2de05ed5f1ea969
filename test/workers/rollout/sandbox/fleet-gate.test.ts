// Several workers' pools on one engine, agreeing through a real Redis on what starts and how much memory it takes.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Box, SandboxDriver } from '../../../../src/shared/sandbox.ts';
import { fleetGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool } from '../../../../src/workers/rollout/sandbox/pool.ts';
import { startRedis, type TestRedis } from '../../../support/redis-server.ts';
import { ScriptedSandbox } from '../../../support/scripted-sandbox.ts';
import { until } from '../../../support/until.ts';
import { LABELS, LIMITS } from '../../sandbox-contract.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const open = (pool: SandboxDriver) => pool.open(LIMITS, LABELS, new AbortController().signal);

test('workers of one engine start no more at once, and take no more memory, than it bears', async () => {
  const engine = new ScriptedSandbox();
  engine.startMs = 40;
  engine.memoryMb = 2_600; // eight boxes of 256 MB
  const pools = ['a', 'b', 'c'].map((name) => createPool(engine, () => fleetGate(server.redis, engine, name)));
  let most = 0;
  const episode = async (pool: SandboxDriver): Promise<void> => {
    const box: Box = await open(pool);
    most = Math.max(most, engine.boxes.size);
    await new Promise((resolve) => setTimeout(resolve, 30));
    await box.close();
  };
  await Promise.all(pools.flatMap((pool) => Array.from({ length: 8 }, () => episode(pool))));
  expect(engine.mostStarting).toBeLessThanOrEqual(4);
  expect(engine.mostStarting).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(8);
  await Promise.all(pools.map((pool) => pool.close()));
  expect(await server.redis.keys('farm:{engine:*')).toEqual([]);
}, 150_000);

test('while Redis is away nothing starts, and what waited starts when it is back', async () => {
  const engine = new ScriptedSandbox();
  const pool = createPool(engine, () => fleetGate(server.redis, engine, 'alone'), { waitMs: 30_000 });
  await (await open(pool)).close();
  await server.kill();
  const waiting = open(pool);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(engine.opened).toBe(1);
  await server.restart();
  await (await waiting).close();
  await pool.close();
  await until('its permits are gone', async () => (await server.redis.keys('farm:{engine:*')).length === 0);
}, 150_000);
