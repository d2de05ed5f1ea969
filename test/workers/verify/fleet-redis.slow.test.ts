// What the fleet keeps in Redis and for how long, and what happens when Redis or an asker goes away.

import { spawn } from 'node:child_process';
import { describe, expect } from 'vitest';
import type { FleetAsker } from '../../../src/workers/verify/fleet/asker.ts';
import { Exchange } from '../../../src/workers/verify/fleet/exchange.ts';
import { FLEET_KEY, flightKey } from '../../../src/workers/verify/fleet/upstream.ts';
import { filesWith } from '../../support/files.ts';
import { API_KEY, fleetOfEach, OPTIONS, queriesOf, queryOf, tally, upstreamOf, words } from '../../support/fleet.ts';
import { gate } from '../../support/gate.ts';
import type { TestRedis } from '../../support/redis-server.ts';
import { fault, permitted, type StubPlatform } from '../../support/stub-platform.ts';

const test = fleetOfEach({ backoffMs: 20 });

/** Every key, field, member and value. */
async function everything({ redis }: TestRedis): Promise<string> {
  const parts: string[] = [];
  for (const key of await redis.keys('*')) {
    parts.push(key);
    const type = await redis.type(key);
    if (type === 'none') continue; // gone meanwhile
    const read = { string: ['GET'], hash: ['HGETALL'], zset: ['ZRANGE', '0', '-1'], list: ['LRANGE', '0', '-1'] }[type];
    if (!read) throw new Error(`a ${type} under ${key}`);
    const [command, ...rest] = read as [string, ...string[]];
    parts.push(JSON.stringify(await redis.call(command, key, ...rest)));
  }
  return parts.join('\n');
}

const kept =
  ({ redis }: TestRedis) =>
  (): Promise<number> =>
    redis.hlen(`${FLEET_KEY}:cache`);

describe('what is kept', () => {
  test('neither prompt nor answer nor key stands in Redis or on its disk, while asked or after', async ({
    server,
    stub,
    fleet,
  }) => {
    const canary = 'CANARYPROMPT';
    let during = '';
    const seen = gate();
    stub.behave = () => ({
      after: seen.opened,
      items: (query) => ({ ...permitted(query), proof_summary: 'CANARYPROOF' }),
    });
    const queries = Array.from({ length: 60 }, (_, i) => queryOf(`${canary} ${i}`, { CANARYFACT: BigInt(i) }));
    // One call at a time: some of it waits in Redis meanwhile.
    const asking = fleet.asker({ concurrency: 1 }).ask(queries, OPTIONS);
    await expect.poll(() => stub.calls.length).toBe(1);
    during = await everything(server);
    seen.open();
    expect(tally(words(await asking))).toEqual({ permit: 60 });
    stub.behave = () => ({ status: 401, body: fault('unauthorized', { message: `the key ${API_KEY} is not valid` }) });
    const [refused] = await fleet.asker().ask(queriesOf(1), OPTIONS);
    expect(refused).toMatchObject({ kind: 'misconfigured', detail: expect.stringContaining('[redacted]') });
    await expect.poll(kept(server)).toBe(60);
    // Its keys are there, so that it is the right folder.
    expect(filesWith(server.folder, FLEET_KEY).length).toBeGreaterThan(0);
    for (const secret of ['CANARY', API_KEY]) {
      for (const text of [during, await everything(server)]) expect(text).not.toContain(secret);
      expect(filesWith(server.folder, secret)).toEqual([]);
    }
    expect([...stub.keys]).toEqual([`Bearer ${API_KEY}`]);
  });

  test('verdicts and denials are kept; nothing transient is, and no flight stays behind', async ({
    server,
    stub,
    fleet,
  }) => {
    const large = 'x'.repeat(300_000);
    const queries = [...queriesOf(4), queryOf(large)];
    const errors: Record<string, object> = {
      'query 1': { code: 'service_unavailable', rejected_facts: ['age'] },
      'query 2': { code: 'internal_error', message: 'x' },
      'query 3': { code: 'strange', status_code: 418, message: 'x' },
      [large]: { code: 'too_big', status_code: 413, message: 'x' },
    };
    stub.behave = () => ({ items: (query) => errors[query] ?? null });
    const answers = await fleet.asker({ tries: 2 }).ask(queries, OPTIONS);
    expect(words(answers)).toEqual(['permit', 'denial', 'unavailable', 'unavailable', 'unreadable']);
    await expect.poll(kept(server)).toBe(2);
    const again = await fleet.asker({ tries: 2 }).ask(queries, OPTIONS);
    expect(again.map((one) => one.cached)).toEqual([true, true, false, false, false]);
    expect(again[1]).toEqual({ ...answers[1], cached: true });
    await expect
      .poll(async () => (await server.redis.keys(`${FLEET_KEY}:u:*`)).filter((key) => /:(q|ps|s|w|p|k)(:|$)/.test(key)))
      .toEqual([]);
  });

  test('the cache stays within its bound, by least use, and its books agree with it', async ({
    server,
    stub,
    fleet,
  }) => {
    const big = 'x'.repeat(2_000);
    stub.behave = () => ({ items: (query) => ({ ...permitted(query), proof_summary: big }) });
    const room = 100_000;
    const asker = fleet.asker({ cacheBytes: room });
    await asker.ask(queriesOf(20), OPTIONS);
    await expect.poll(kept(server)).toBe(20);
    for (let i = 1; i <= 10; i++) {
      await asker.ask(queriesOf(2), OPTIONS);
      await asker.ask(queriesOf(10, i * 100), OPTIONS);
    }
    const most = Math.floor(room / 2_450);
    await expect.poll(kept(server)).toBeLessThanOrEqual(most);
    expect(await kept(server)()).toBeGreaterThan(most - 10);
    // Used in every round, and so never dropped.
    expect(stub.asked.get('query 0')).toBe(1);
    const [bytes, lru, exp] = await Promise.all([
      server.redis.get(`${FLEET_KEY}:bytes`),
      server.redis.zcard(`${FLEET_KEY}:lru`),
      server.redis.zcard(`${FLEET_KEY}:exp`),
    ]);
    expect([lru, exp]).toEqual([await kept(server)(), await kept(server)()]);
    expect(Number(bytes)).toBeLessThanOrEqual(room);
    let memory = 0;
    for (const name of ['cache', 'lru', 'exp'])
      memory += Number(await server.redis.call('MEMORY', 'USAGE', `${FLEET_KEY}:${name}`, 'SAMPLES', '0'));
    expect(memory).toBeLessThan(room * 1.15);
  });

  test('an answer is kept for its time only', async ({ server, stub, fleet }) => {
    const asker = fleet.asker();
    await asker.ask(queriesOf(1), { ...OPTIONS, ttlMs: 150 });
    // It has its answer before the fleet has taken note, and the time runs from there.
    await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
    await new Promise((resolve) => setTimeout(resolve, 200));
    const [answer] = await asker.ask(queriesOf(1), OPTIONS);
    expect(answer?.cached).toBe(false);
    expect(stub.asked.get('query 0')).toBe(2);
  });

  test('when Redis fills up the cache goes first, and asking goes on', async ({ server, stub, fleet }) => {
    const asker = fleet.asker();
    await asker.ask(queriesOf(100), OPTIONS);
    await expect.poll(kept(server)).toBe(100);
    const used = Number(/used_memory:(\d+)/.exec(await server.redis.info('memory'))?.[1]);
    await server.redis.config('SET', 'maxmemory', String(used));
    const gone = gate();
    stub.behave = () => ({ after: gone.opened });
    const asking = asker.ask(queriesOf(10, 500), { ...OPTIONS, deadlineMs: 60_000 });
    await expect.poll(kept(server)).toBe(0);
    gone.open();
    expect(tally(words(await asking))).toEqual({ permit: 10 });
    await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
    expect(await kept(server)()).toBe(0);
  });
});

describe('waiting', () => {
  test('a deadline is kept although the upstream hangs, and each follower has its own', async ({ stub, fleet }) => {
    stub.behave = () => ({ hang: true });
    const [first, second] = [fleet.asker(), fleet.asker()];
    const began = performance.now();
    const ended: string[] = [];
    const took = async (who: string, asking: Promise<unknown>): Promise<number> => {
      await asking;
      ended.push(who);
      return performance.now() - began;
    };
    const answers = first.ask(queriesOf(60), { ...OPTIONS, deadlineMs: 600 });
    const [a, b] = await Promise.all([
      took('first', answers),
      took('second', second.ask(queriesOf(60), { ...OPTIONS, deadlineMs: 250 })),
    ]);
    expect(tally(words(await answers))).toEqual({ unavailable: 60 });
    expect(ended).toEqual(['second', 'first']);
    expect(a).toBeGreaterThan(590);
    expect(b).toBeGreaterThan(240);
    // Far from the end of the call, which is at a minute.
    expect(Math.max(a, b)).toBeLessThan(20_000);
  });

  test('one that hangs holds up nobody else', async ({ stub, fleet }) => {
    stub.behave = (call) => (call.queries.includes('query 0') ? { hang: true } : undefined);
    const asker = fleet.asker();
    const stop = new AbortController();
    const hung = asker.ask(queriesOf(1), { ...OPTIONS, deadlineMs: null, signal: stop.signal });
    await expect.poll(() => stub.calls.length).toBe(1);
    expect(tally(words(await asker.ask(queriesOf(255, 1), OPTIONS)))).toEqual({ permit: 255 });
    stop.abort();
    expect(words(await hung)).toEqual(['unavailable']);
  });

  test('what nobody waits for any more is not asked; what somebody waits for is', async ({ server, stub, fleet }) => {
    const done = gate();
    stub.behave = (call) => (call.number === 1 ? { after: done.opened } : undefined);
    const [first, second] = [fleet.asker({ concurrency: 1 }), fleet.asker({ concurrency: 1 })];
    const busy = first.ask(queriesOf(1, 900), OPTIONS);
    await expect.poll(() => stub.calls.length).toBe(1);
    const stop = new AbortController();
    const left = first.ask(queriesOf(10), { ...OPTIONS, signal: stop.signal });
    const stays = second.ask(queriesOf(5), OPTIONS);
    await expect.poll(async () => (await upstreamOf(server))?.waiting).toBe(10);
    await expect.poll(async () => (await upstreamOf(server))?.counters.joins).toBe(5);
    stop.abort();
    expect(tally(words(await left))).toEqual({ unavailable: 10 });
    await expect.poll(async () => (await upstreamOf(server))?.waiting).toBe(5);
    done.open();
    expect(tally(words([...(await busy), ...(await stays)]))).toEqual({ permit: 6 });
    expect([...stub.asked.keys()].sort()).toEqual(['query 0', 'query 1', 'query 2', 'query 3', 'query 4', 'query 900']);
  });

  describe('a call that hangs, and that nobody waits for any more,', () => {
    /** Asks, and wants no answer any more as soon as the platform has the query. */
    const leave = async (stub: StubPlatform, asker: FleetAsker, i: number): Promise<void> => {
      const stop = new AbortController();
      const left = asker.ask(queriesOf(1, i), { ...OPTIONS, signal: stop.signal });
      await expect.poll(() => stub.asked.has(`query ${i}`), { interval: 5 }).toBe(true);
      stop.abort();
      expect(words(await left)).toEqual(['unavailable']);
    };
    const hanging = (stub: StubPlatform, text: string): void => {
      stub.behave = (call) => (call.queries.some((query) => query.includes(text)) ? { hang: true } : undefined);
    };

    test('keeps its permit from nobody, though all of them hang, by batch and alone', async ({
      server,
      stub,
      fleet,
    }) => {
      hanging(stub, 'query 1');
      const limits = { concurrency: 2, hedgeMs: 400 };
      const [one, other] = [fleet.asker(limits), fleet.asker(limits)];
      const left = [10, 11, 12].map((from) => one.ask(queriesOf(1, from), { ...OPTIONS, deadlineMs: 300 }));
      left.push(one.ask(queriesOf(60, 100), { ...OPTIONS, deadlineMs: 300 }));
      expect(tally(words((await Promise.all(left)).flat()))).toEqual({ unavailable: 63 });
      expect(words(await other.ask(queriesOf(1, 20), { ...OPTIONS, deadlineMs: 30_000 }))).toEqual(['permit']);
      await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
    });

    test('counts against the platform where that answers nothing else', async ({ server, stub, fleet }) => {
      stub.behave = () => ({ hang: true });
      const asker = fleet.asker({ concurrency: 8, hedgeMs: 300 });
      for (let i = 0; i < 5; i++) await leave(stub, asker, i);
      await expect.poll(async () => (await upstreamOf(server))?.breaker).toBe('open');
    });

    test('counts for nothing where the platform answers others meanwhile', async ({ server, stub, fleet }) => {
      hanging(stub, 'query 1');
      const asker = fleet.asker({ concurrency: 8, hedgeMs: 300 });
      for (let i = 10; i < 17; i++) await leave(stub, asker, i);
      expect(words(await asker.ask(queriesOf(1), OPTIONS))).toEqual(['permit']);
      await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
      const state = await upstreamOf(server);
      expect(state).toMatchObject({ breaker: 'closed', failuresInARow: 0 });
    });

    test('is not broken off while somebody of another process waits for it', async ({ server, stub, fleet }) => {
      const left = gate();
      stub.behave = () => ({ after: left.opened, delayMs: 2_200 });
      const [one, other] = [fleet.asker({ hedgeMs: 200 }), fleet.asker({ hedgeMs: 200 })];
      const stop = new AbortController();
      const leaves = one.ask(queriesOf(1), { ...OPTIONS, signal: stop.signal });
      await expect.poll(() => stub.calls.length).toBe(1);
      const stays = other.ask(queriesOf(1), OPTIONS);
      await expect.poll(async () => (await upstreamOf(server))?.counters.joins).toBe(1);
      stop.abort();
      expect(words(await leaves)).toEqual(['unavailable']);
      left.open();
      expect(words(await stays)).toEqual(['permit']);
      expect(stub.asked.get('query 0')).toBe(1);
    });
  });

  test('an asker that closes answers its own at once, and gives back what it asks for others', async ({
    server,
    stub,
    fleet,
  }) => {
    stub.behave = (call) => (call.number === 1 ? { hang: true } : undefined);
    // Longer than anybody waits here: nobody is taken for dead.
    const limits = { concurrency: 1, leaseMs: 60_000 };
    const [leaver, other] = [fleet.asker(limits), fleet.asker(limits)];
    const own = leaver.ask(queriesOf(10), OPTIONS);
    await expect.poll(() => stub.calls.length).toBe(1);
    const followed = other.ask(queriesOf(10), OPTIONS);
    await expect.poll(async () => (await upstreamOf(server))?.counters.joins).toBe(10);
    await leaver.close();
    expect(await own).toEqual(new Array(10).fill(expect.objectContaining({ kind: 'unavailable', detail: 'stopped' })));
    expect(tally(words(await followed))).toEqual({ permit: 10 });
    await expect.poll(() => upstreamOf(server)).toMatchObject({ inFlight: 0, waiting: 0, failuresInARow: 0 });
    expect(words(await leaver.ask(queriesOf(1), OPTIONS))).toEqual(['unavailable']);
  });
});

describe('a Redis that goes away', () => {
  test('killed and started again: everything is answered, and nothing is asked twice', async ({
    server,
    stub,
    fleet,
  }) => {
    const back = gate();
    stub.behave = () => ({ after: back.opened });
    const limits = { concurrency: 2, leaseMs: 60_000 };
    const askers = [fleet.asker(limits), fleet.asker(limits)];
    const options = { ...OPTIONS, deadlineMs: 60_000 };
    const asking = Promise.all(askers.map((asker) => asker.ask(queriesOf(150), options)));
    await expect.poll(() => stub.calls.length).toBe(2);
    const ended = new Promise((resolve) => server.process.once('exit', resolve));
    server.process.kill('SIGKILL');
    await ended;
    // Both calls are answered while it is away.
    back.open();
    const again = spawn('redis-server', server.process.spawnargs.slice(1), { stdio: 'ignore' });
    try {
      expect(tally((await asking).flatMap(words))).toEqual({ permit: 300 });
      expect(tally([...stub.asked.values()].map(String))).toEqual({ 1: 150 });
    } finally {
      again.kill('SIGKILL');
    }
  });

  test('one that stays away costs answers by their deadline, and no throw', async ({ server, fleet }) => {
    const asker = fleet.asker();
    await asker.ask(queriesOf(1), OPTIONS);
    server.process.kill('SIGKILL');
    const began = performance.now();
    expect(words(await asker.ask(queriesOf(3, 10), { ...OPTIONS, deadlineMs: 400 }))).toEqual(
      new Array(3).fill('unavailable'),
    );
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  test('one that comes back empty: what waits is asked anew', async ({ server, stub, fleet }) => {
    const empty = gate();
    stub.behave = (call) => (call.number === 1 ? { after: empty.opened } : undefined);
    const [first, second] = [fleet.asker({ concurrency: 1 }), fleet.asker({ concurrency: 1 })];
    const asking = Promise.all([first.ask(queriesOf(5), OPTIONS), second.ask(queriesOf(5, 10), OPTIONS)]);
    await expect.poll(() => stub.calls.length).toBe(1);
    await expect.poll(async () => (await upstreamOf(server))?.counters.queries).toBe(10);
    await server.redis.flushall();
    empty.open();
    expect(tally((await asking).flatMap(words))).toEqual({ permit: 10 });
  });
});

describe('what a script is told', () => {
  const member = ({ redis }: TestRedis, process: string): Exchange =>
    new Exchange(
      redis,
      { upstream: 'up', process, platform: '1', key: 'k' },
      { concurrency: 2, windowMs: 0, patienceMs: 900_000, tries: 1 },
    );
  const join = (exchange: Exchange, count: number) =>
    exchange.join(
      { epoch: 'e', cache: true, ttlMs: 60_000, budget: null, joined: 0, now: true, shown: 'there' },
      Array.from({ length: count }, (_, i) => ({ key: flightKey('up', 'e', String(i)), sealed: null })),
    );
  const paused = { outcome: 'none', why: 'wait', halved: 0, restored: false, single: false };

  test.for([
    { pauseMs: 1e19, waited: '1e19', wakes: 300_000 },
    { pauseMs: 3_600_000, waited: '3600000', wakes: 300_000 },
    { pauseMs: Number.POSITIVE_INFINITY, waited: 'Infinity', wakes: null },
    { pauseMs: Number.NaN, waited: 'NaN', wakes: null },
    { pauseMs: -5, waited: '-5', wakes: null },
  ])('a pause of $pauseMs ms lasts five minutes at most, and one that is no time is none', async (row, { server }) => {
    const exchange = member(server, 'one');
    const [call] = (await join(exchange, 1)).calls;
    if (!call) throw new Error('no call');
    const key = flightKey('up', 'e', '0');
    const said = { ...paused, pauseMs: row.pauseMs };
    const items = [{ key, code: 'a', value: `0 ${row.waited} 0`, number: row.pauseMs }];
    const reply = await exchange.settle([{ call, permit: call.token, last: true, heir: null, said, items }]);
    const state = await upstreamOf(server);
    if (row.wakes === null) {
      expect(reply.calls.map((one) => one.items.map((item) => item.key))).toEqual([[key]]);
      expect(state?.rateLimitedForMs).toBe(0);
    } else {
      expect(reply.calls).toEqual([]);
      expect(reply.wakeMs).toBeLessThanOrEqual(row.wakes);
      expect(reply.wakeMs).toBeGreaterThan(row.wakes - 2_000);
      expect(state?.rateLimitedForMs).toBeLessThanOrEqual(row.wakes);
    }
  });

  test('what dies with a process comes back in parts, after a second death one by one, and at no try', async ({
    server,
  }) => {
    const [first, second, third] = ['first', 'second', 'third'].map((name) => member(server, name)) as [
      Exchange,
      Exchange,
      Exchange,
    ];
    expect((await join(first, 14)).calls.map((call) => call.items.length)).toEqual([14]);
    await join(second, 14);
    await join(third, 14);
    const parts = (await second.beat({ mine: [], dead: ['first'], abandon: 60_000 }, [])).calls;
    expect(parts.map((call) => call.items.length)).toEqual([7, 7]);
    const alone = (await third.beat({ mine: [], dead: ['second'], abandon: 60_000 }, [])).calls;
    expect(alone.map((call) => call.items.length)).toEqual([1, 1]);
    expect([...parts, ...alone].flatMap((call) => call.items).every((item) => item.tries === 0)).toBe(true);
  });

  test('a query that every process dies of is given up, and does not take the whole fleet with it', async ({
    server,
  }) => {
    const all = Array.from({ length: 10 }, (_, i) => member(server, `m${i}`));
    let taken = 0;
    for (const [i, one] of all.entries()) {
      one.closing = i > 0;
      taken += (await join(one, 1)).calls.length;
    }
    for (const [i, one] of all.entries()) {
      one.closing = false;
      if (i > 0) taken += (await one.beat({ mine: [], dead: [`m${i - 1}`], abandon: 60_000 }, [])).calls.length;
    }
    // Together, in a part, and five times alone.
    expect(taken).toBe(7);
  });

  test('a call that Redis refuses to settle is told, tried again, and its own askers have their answers', async ({
    server,
    stub,
    fleet,
  }) => {
    const asker = fleet.asker();
    stub.behave = () => ({ after: server.redis.set(`${FLEET_KEY}:exp`, 'not what it should be') });
    expect(words(await asker.ask(queriesOf(1), OPTIONS))).toEqual(['permit']);
    await expect
      .poll(() => fleet.log.map((line) => `${line.level} ${line.message}`))
      .toEqual(['warn a call could not be settled: tried again']);
    expect(fleet.log[0]?.detail).toContain('WRONGTYPE');
    await server.redis.del(`${FLEET_KEY}:exp`);
    await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
  });
});
