import { afterAll, beforeAll, expect, it } from 'vitest';
import { announce, type Present, perhapsPresent, present, presentIn } from '../../src/shared/presence.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const rollout: Present = { role: 'rollout', realm: 'shared', worker: 'rollout-1', slots: { rollout: 4, light: 16 } };
const verify: Present = { role: 'verify', realm: 'run.a', worker: 'verify-1', slots: { verify: 64 } };

it('shows who is there, with role and realm, until they say that they go', async () => {
  const one = await announce(server.redis, rollout);
  const other = await announce(server.redis, verify);
  expect(await present(server.redis)).toEqual([rollout, verify]);
  expect(await presentIn(server.redis, 'run.a')).toEqual([verify]);
  await one.stop();
  expect(await present(server.redis)).toEqual([verify]);
  await other.stop();
  expect(await present(server.redis)).toEqual([]);
});

it('shows whose AmberTrace key a worker holds, where it tells of one, and with no slots too', async () => {
  const keyed: Present = { role: 'verify', realm: 'shared', worker: 'verify-2', slots: {}, key: '0123456789abcdef' };
  const ends = [await announce(server.redis, { ...rollout, key: null }), await announce(server.redis, keyed)];
  expect(await present(server.redis)).toEqual([rollout, keyed]);
  for (const { stop } of ends) await stop();
});

it('forgets those who have not been heard of for a while, without their saying so', async () => {
  await server.redis.zadd('farm:workers', Date.now() - 1, 'rollout shared rollout-dead');
  await server.redis.zadd('farm:workers', Date.now() - 120_000, 'rollout shared rollout-long-dead');
  expect(await present(server.redis)).toEqual([]);
  expect(await server.redis.zcard('farm:workers')).toBe(1);
});

it('announces again and again', async () => {
  const { stop } = await announce(server.redis, rollout);
  await server.redis.del('farm:workers');
  expect(await until('it is announced again', async () => (await present(server.redis))[0])).toEqual(rollout);
  await stop();
});

it('does not take a worker for gone whom a Redis that was away could not hear', async () => {
  // As it stands when Redis was silent for longer than an announcement is good for.
  await server.redis.zadd('farm:workers', Date.now() - 20_000, 'rollout shared rollout-unheard');
  expect(await present(server.redis)).toEqual([]);
  expect(await perhapsPresent(server.redis)).toEqual([
    { role: 'rollout', realm: 'shared', worker: 'rollout-unheard', slots: {} },
  ]);
  await server.redis.del('farm:workers');
});

it('is heard on a full Redis too', async () => {
  await server.redis.call('CONFIG', 'SET', 'maxmemory', '1');
  try {
    await expect(server.redis.set('x', 'y')).rejects.toThrow(/OOM/);
    const { stop } = await announce(server.redis, rollout);
    expect(await present(server.redis)).toEqual([rollout]);
    await stop();
  } finally {
    await server.redis.call('CONFIG', 'SET', 'maxmemory', '0');
  }
});
