// Permits of one engine over several processes and one real Redis: the bounds hold over all, who waits longest is next,
// and a dead process holds nothing once its lease has ended.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { EnginePermits, type Held, type PermitTimes } from '../../src/shared/permits/engine-permits.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const BOUNDS = { startsAtOnce: 2, memoryMb: 1_000 };
const NOTHING: Held = { starting: 0, memoryMb: 0 };

describe('permits of an engine', () => {
  let server: TestRedis;
  let turn = 0;
  const member = (owner: string, times: Partial<PermitTimes> = {}) =>
    new EnginePermits(server.redis, `engine-${turn}`, owner, BOUNDS, times);

  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.close());
  beforeEach(() => {
    turn += 1;
  });

  test('hold over all processes together: starts at once, and memory of all boxes', async () => {
    const [a, b] = [member('a'), member('b')];
    expect(await a.claim(NOTHING, 300)).toMatchObject({ granted: true });
    expect(await b.claim(NOTHING, 300)).toMatchObject({ granted: true });
    expect(await a.claim({ starting: 1, memoryMb: 300 }, 300)).toMatchObject({ granted: false });
    // b's box has started: its memory still counts, its start does not
    await b.claim({ starting: 0, memoryMb: 300 }, null);
    expect(await a.claim({ starting: 1, memoryMb: 300 }, 300)).toMatchObject({ granted: true });
    await a.claim({ starting: 0, memoryMb: 600 }, null);
    expect(await b.claim({ starting: 0, memoryMb: 300 }, 300)).toMatchObject({ granted: false });
    await a.claim({ starting: 0, memoryMb: 300 }, null);
    expect(await b.claim({ starting: 0, memoryMb: 300 }, 300)).toMatchObject({ granted: true });
  });

  test('of another engine are others', async () => {
    const here = member('a');
    await here.claim({ starting: 2, memoryMb: 900 }, null);
    turn += 1;
    expect(await member('b').claim(NOTHING, 300)).toMatchObject({ granted: true });
  });

  test('go to who waits longest, so that a large box is not starved by small ones', async () => {
    const [large, small] = [member('large'), member('small')];
    await small.claim({ starting: 0, memoryMb: 400 }, null);
    expect(await large.claim(NOTHING, 900)).toMatchObject({ granted: false });
    expect(await small.claim({ starting: 0, memoryMb: 400 }, 100)).toMatchObject({ granted: false });
    expect(await small.claim({ starting: 0, memoryMb: 0 }, 100)).toMatchObject({ granted: false });
    expect(await large.claim(NOTHING, 900)).toMatchObject({ granted: true });
    expect(await small.claim({ starting: 0, memoryMb: 0 }, 100)).toMatchObject({ granted: true });
  });

  test('are not kept from others by one who stopped asking', async () => {
    // Of two that begin to wait in one millisecond the first by name is first.
    const [quiet, other] = [member('ahead', { waitMs: 200 }), member('other')];
    await other.claim({ starting: 0, memoryMb: 400 }, null);
    await quiet.claim(NOTHING, 900);
    expect(await other.claim({ starting: 0, memoryMb: 400 }, 100)).toMatchObject({ granted: false });
    await until('its wait is over', async () => (await other.claim({ starting: 0, memoryMb: 400 }, 100)).granted);
  });

  test('of a dead process come back when its lease ends, of one that leaves at once', async () => {
    const [dead, other] = [member('dead', { leaseMs: 300 }), member('other')];
    await dead.claim({ starting: 2, memoryMb: 1_000 }, null);
    expect(await other.claim(NOTHING, 100)).toMatchObject({ granted: false });
    await until('the lease has ended', async () => (await other.claim(NOTHING, 100)).granted);
    const left = member('left');
    await left.claim({ starting: 1, memoryMb: 900 }, null);
    expect(await other.claim({ starting: 0, memoryMb: 100 }, 100)).toMatchObject({ granted: false });
    await left.leave();
    expect(await other.claim({ starting: 0, memoryMb: 100 }, 100)).toMatchObject({ granted: true });
    await other.leave();
    await dead.leave();
    expect(await server.redis.keys(`farm:{engine:engine-${turn}}*`)).toEqual([]);
  });

  test('are told anew by who holds them, after a Redis that lost them', async () => {
    const [a, b] = [member('a'), member('b')];
    await a.claim({ starting: 2, memoryMb: 500 }, null);
    await server.redis.flushall();
    await a.claim({ starting: 2, memoryMb: 500 }, null);
    expect(await b.claim(NOTHING, 100)).toMatchObject({ granted: false });
  });

  test('that others hold for boxes without work are asked for', async () => {
    const [rich, poor] = [member('rich'), member('poor')];
    expect(await rich.claim({ starting: 0, memoryMb: 900 }, null)).toMatchObject({ pressed: false });
    await poor.claim(NOTHING, 300);
    expect(await rich.claim({ starting: 0, memoryMb: 900 }, null)).toMatchObject({ pressed: true });
    expect(await rich.claim({ starting: 0, memoryMb: 500 }, null)).toMatchObject({ pressed: false });
  });
});
