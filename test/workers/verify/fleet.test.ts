import { setTimeout as delay } from 'node:timers/promises';
import { describe } from 'vitest';
import { FLEET_KEY } from '../../../src/workers/verify/fleet/upstream.ts';
import {
  endRest,
  type Fleet,
  fleetOfEach,
  OPTIONS,
  queriesOf,
  queryOf,
  tally,
  upstreamOf,
  words,
} from '../../support/fleet.ts';
import { gate } from '../../support/gate.ts';
import { fault, type StubPlatform } from '../../support/stub-platform.ts';
import { TIMED } from '../../support/timed.ts';
import { until } from '../../support/until.ts';

const test = fleetOfEach();

const most = (stub: StubPlatform): number => Math.max(...stub.asked.values());

describe.concurrent('one fleet', () => {
  test('120 queries travel in batches of at most 50 and are answered in order', async ({ expect, stub, fleet }) => {
    const answers = await fleet.asker().ask(queriesOf(120), OPTIONS);
    expect(answers.map((one) => one.kind === 'verdict' && one.data.get('answer'))).toEqual(
      queriesOf(120).map((one) => `permit ${one.query.length}`),
    );
    expect(stub.calls.map((call) => call.queries.length).sort()).toEqual([20, 50, 50]);
  });

  test('queries of five askers that wait at the same moment travel together', async ({ expect, stub, fleet }) => {
    // The window is far longer than the test: it is the full batch that goes.
    const askers = Array.from({ length: 5 }, () => fleet.asker({ windowMs: 15_000 }));
    await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(10, i * 10), OPTIONS)));
    expect(stub.calls.map((call) => call.queries.length)).toEqual([50]);
  });

  test('equal queries of four askers are asked once each, under way or later', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const joined = until('all the others have joined', async () => (await upstreamOf(server))?.counters.joins === 300);
    stub.behave = () => ({ after: joined });
    const askers = Array.from({ length: 4 }, () => fleet.asker());
    const all = await Promise.all(askers.map((asker) => asker.ask(queriesOf(100), OPTIONS)));
    expect(tally(all.flatMap(words))).toEqual({ permit: 400 });
    const later = await fleet.asker().ask(queriesOf(100), OPTIONS);
    expect(later.every((one) => one.cached)).toBe(true);
    expect([stub.asked.size, most(stub)]).toEqual([100, 1]);
    const state = await upstreamOf(server);
    expect(state?.counters).toMatchObject({ queries: 100, items: 100, joins: 300, cacheHits: 100 });
  });

  test('another epoch, and a cache that is off, ask anew; equal queries under way stay one', async ({
    expect,
    stub,
    fleet,
  }) => {
    const asker = fleet.asker();
    await asker.ask(queriesOf(3), OPTIONS);
    await asker.ask(queriesOf(3), { ...OPTIONS, epoch: 'epoch-2' });
    await asker.ask(queriesOf(3), { ...OPTIONS, cache: false });
    expect(most(stub)).toBe(3);
    await Promise.all([1, 2, 3].map(() => asker.ask([queryOf('new')], { ...OPTIONS, cache: false })));
    expect(stub.asked.get('new')).toBe(1);
  });

  test('an answer that came from another process is the same, to the type of its numbers', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const data = (query: string) =>
      `{"ok":true,"data":{"results":[{"index":0,"status":"ok","data":{"query":${JSON.stringify(query)},"decision":1.0,"answer":[1,1e-05,1180591620717411303424,"\\ud800"],"proof_checked":true}}]}}`;
    const joined = until('the other has joined', async () => (await upstreamOf(server))?.counters.joins === 1);
    stub.behave = (call) => ({ body: data(call.queries[0] as string), after: joined });
    const [first, second] = await Promise.all(
      [fleet.asker(), fleet.asker()].map((a) => a.ask([queryOf('q')], OPTIONS)),
    );
    const [third] = await fleet.asker().ask([queryOf('q')], OPTIONS);
    expect(stub.calls.length).toBe(1);
    expect(first?.[0]).toMatchObject({ kind: 'verdict' });
    expect(second).toEqual(first);
    expect(third).toEqual({ ...first?.[0], cached: true });
    expect(first?.[0]?.kind === 'verdict' && [...first[0].data]).toEqual([
      ['decision', 1],
      ['answer', [1n, 0.00001, 2n ** 70n, '\ud800']],
      ['proof_checked', true],
    ]);
  });
});

test.concurrent('queries are asked in the order in which they are wanted', async ({ expect, stub, fleet }) => {
  stub.behave = (call) => (call.single ? undefined : { status: 404, body: 'Not Found' });
  // Where requests are counted by the second no call is taken ahead, and none that was given back is overtaken.
  const asker = fleet.asker({ concurrency: 1, requestsPerSecond: 500 });
  await asker.ask([queryOf('first')], OPTIONS);
  await asker.ask(queriesOf(60), OPTIONS);
  const asked = stub.calls.filter((call) => call.single).map((call) => call.queries[0]);
  expect(asked).toEqual(['first', ...queriesOf(60).map((one) => one.query)]);
});

describe.concurrent('calls taken ahead', () => {
  // Many quick calls, so that it is known how long they take.
  const warm = async (stub: StubPlatform, fleet: Fleet) => {
    stub.behave = (call) => (call.single ? { delayMs: 20 } : { status: 404, body: 'Not Found' });
    const askers = [fleet.asker({ concurrency: 8 }), fleet.asker({ concurrency: 8 })] as const;
    await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(30, 10_000 + i * 100), OPTIONS)));
    return askers;
  };

  test('keep to the calls at once, and ask each query once', async ({ expect, server, stub, fleet }) => {
    const askers = await warm(stub, fleet);
    stub.most = 0;
    const all = await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(300, i * 150), OPTIONS)));
    expect(tally(all.flatMap(words))).toEqual({ permit: 600 });
    expect(stub.most).toBeLessThanOrEqual(8);
    expect(queriesOf(450).map((query) => stub.asked.get(query.query))).toEqual(new Array(450).fill(1));
    const state = await upstreamOf(server);
    // The one call that found no batch path carried queries too.
    expect(state?.counters.items).toBe([...stub.calls].reduce((sum, call) => sum + call.queries.length, 0));
  });

  test('do not wait behind a call that hangs', async ({ expect, stub, fleet }) => {
    const [asker] = await warm(stub, fleet);
    stub.behave = (call) => (call.queries.includes('query 3') ? { hang: true } : { delayMs: 20 });
    // It hangs until all the others have their answers.
    const stop = new AbortController();
    const hung = asker.ask(queriesOf(1, 3), { ...OPTIONS, deadlineMs: null, signal: stop.signal });
    const others = [...queriesOf(3), ...queriesOf(96, 4)].map((query) => asker.ask([query], OPTIONS));
    expect(tally((await Promise.all(others)).flatMap(words))).toEqual({ permit: 99 });
    stop.abort();
    expect(words(await hung)).toEqual(['unavailable']);
  });

  test('do not go out into a pause: nobody calls while a 429 says wait', async ({ expect, server, stub, fleet }) => {
    const askers = await warm(stub, fleet);
    let refused = 0;
    stub.behave = (call) =>
      call.queries.includes('query 40') && refused++ === 0
        ? { status: 429, headers: { 'retry-after': '1' }, body: fault('rate_limit_exceeded') }
        : { delayMs: 20 };
    const asking = Promise.all(askers.map((asker, i) => asker.ask(queriesOf(100, i * 100), OPTIONS)));
    await expect.poll(async () => (await upstreamOf(server))?.counters.rateLimited, { interval: 10 }).toBe(1);
    // What was on its way when the word came; then silence for as long as the pause lasts.
    await delay(200);
    const calls = stub.calls.length;
    for (;;) {
      const seen = stub.calls.length;
      if (((await upstreamOf(server))?.rateLimitedForMs ?? 0) === 0) break;
      expect(seen).toBe(calls);
      await delay(20);
    }
    expect(tally((await asking).flatMap(words))).toEqual({ permit: 200 });
  });

  test('of a process that closes are made by others', async ({ expect, stub, fleet }) => {
    const [one, other] = await warm(stub, fleet);
    const [first, second] = [one.ask(queriesOf(100), OPTIONS), other.ask(queriesOf(100), OPTIONS)];
    await expect.poll(() => stub.asked.has('query 9')).toBe(true);
    await one.close(20_000);
    expect(tally(words(await second))).toEqual({ permit: 100 });
    expect((await first).length).toBe(100);
    expect(Math.max(...queriesOf(100).map((query) => stub.asked.get(query.query) ?? 0))).toBe(1);
  });
});

describe.concurrent('limits', () => {
  test('no more calls are under way than allowed, whoever asks', async ({ expect, stub, fleet }) => {
    const three = until('three are under way', () => stub.calls.length >= 3);
    stub.behave = () => ({ after: three, delayMs: 15 });
    const askers = Array.from({ length: 4 }, () => fleet.asker({ concurrency: 3 }));
    await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(200, i * 200), OPTIONS)));
    expect(stub.most).toBe(3);
    expect(stub.asked.size).toBe(800);
  });

  test('no more requests a second than allowed, whoever asks', async ({ expect, stub, fleet }) => {
    const askers = [fleet.asker({ requestsPerSecond: 20 }), fleet.asker({ requestsPerSecond: 20 })];
    const began = performance.now();
    await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(250, i * 250), OPTIONS)));
    // Ten calls or more: nine spaces of 50 ms.
    expect(stub.calls.length).toBeGreaterThanOrEqual(10);
    expect(performance.now() - began).toBeGreaterThanOrEqual((stub.calls.length - 1) * 50 - 5);
  });

  test.for([
    { limits: 'calls at once', strict: { concurrency: 2 }, lax: { concurrency: 8 } },
    { limits: 'requests a second', strict: { requestsPerSecond: 20 }, lax: {} },
    { limits: 'both, of different askers', strict: { requestsPerSecond: 20 }, lax: { concurrency: 2 } },
  ])(
    'where configurations differ in $limits, the strictest of those that ask holds, whoever calls',
    async ({ strict, lax }, { expect, stub, fleet }) => {
      const [one, other] = [fleet.asker({ concurrency: 8, ...strict }), fleet.asker({ concurrency: 8, ...lax })];
      await one.ask(queriesOf(1, 10_000), OPTIONS);
      stub.most = 0;
      let [calls, lastAt] = [0, 0];
      stub.behave = () => {
        calls++;
        lastAt = performance.now();
        return { delayMs: 15 };
      };
      const began = performance.now();
      await Promise.all([other, one].map((asker, i) => asker.ask(queriesOf(400, i * 400), OPTIONS)));
      expect(calls).toBeGreaterThanOrEqual(16);
      if ('concurrency' in strict || 'concurrency' in lax) expect(stub.most).toBeLessThanOrEqual(2);
      if ('requestsPerSecond' in strict) expect(lastAt - began).toBeGreaterThanOrEqual((calls - 1) * 50 - 10);
    },
  );

  test('a stricter limit holds from the first query under it, for all but the calls that were taken before', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const slots = 16;
    stub.behave = () => ({ delayMs: 150 });
    const lax = fleet.asker({ concurrency: slots });
    await lax.ask(queriesOf(slots * 50, 10_000), OPTIONS);
    const known = gate();
    stub.behave = () => ({ after: known.opened, delayMs: 150 });
    const flood = lax.ask(queriesOf(slots * 50 * 4), OPTIONS);
    await expect.poll(() => stub.calls.length).toBe(2 * slots);
    const strict = fleet.asker({ concurrency: slots, requestsPerSecond: 4 });
    const wanted = strict.ask(queriesOf(1, 20_000), OPTIONS);
    await expect.poll(async () => (await upstreamOf(server))?.counters.queries).toBe(slots * 50 * 5 + 1);
    const [from, calls] = [performance.now(), stub.calls.length];
    known.open();
    await expect.poll(() => stub.calls.length - calls).toBeGreaterThan(3);
    await delay(1_000);
    const most = ((performance.now() - from) / 1_000) * 4 + 1;
    expect(stub.calls.length - calls).toBeLessThan(most + slots + 1);
    await Promise.all([lax.close(), strict.close()]);
    expect((await flood).length + (await wanted).length).toBe(slots * 50 * 4 + 1);
  });

  test('a 429 pauses the whole fleet for as long as it says, is told once, and is no verdict and no failure', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const at: number[] = [];
    stub.behave = (call) => {
      at.push(performance.now());
      return call.number === 1
        ? { status: 429, headers: { 'retry-after': '1' }, body: fault('rate_limit_exceeded') }
        : undefined;
    };
    const first = fleet.asker().ask(queriesOf(2), OPTIONS);
    await expect.poll(async () => (await upstreamOf(server))?.counters.rateLimited).toBe(1);
    const second = fleet.asker().ask(queriesOf(2, 10), OPTIONS);
    expect(tally((await Promise.all([first, second])).flatMap(words))).toEqual({ permit: 4 });
    expect((at[1] as number) - (at[0] as number)).toBeGreaterThan(980);
    expect(fleet.log.filter((line) => line.message.includes('rate limited')).length).toBe(1);
    await expect
      .poll(() => upstreamOf(server))
      .toMatchObject({ breaker: 'closed', failuresInARow: 0, counters: { failures: 0, rateLimited: 1 } });
  });

  test('a platform that refuses for ever and says Retry-After: 0 is asked at most ten times a second', async ({
    expect,
    stub,
    fleet,
  }) => {
    const at: number[] = [];
    stub.behave = () => {
      at.push(performance.now());
      return { status: 429, headers: { 'retry-after': '0' }, body: '' };
    };
    const answers = await fleet.asker({ patienceMs: 550 }).ask(queriesOf(3), OPTIONS);
    expect(words(answers)).toEqual(['unavailable', 'unavailable', 'unavailable']);
    expect(at.length).toBeGreaterThan(1);
    expect(at.length).toBeLessThanOrEqual(6);
    for (const [i, ms] of at.slice(1).entries()) expect(ms - (at[i] as number)).toBeGreaterThan(90);
  });

  test('after a pause one call goes alone, and the others follow only when it is not refused', async ({
    expect,
    stub,
    fleet,
  }) => {
    const at: number[] = [];
    const four = until('four are under way', () => stub.calls.length >= 4);
    stub.behave = (call) => {
      at[call.number] = performance.now();
      if (call.number <= 6) return { status: 429, headers: { 'retry-after': '0' }, body: '', after: four };
      return call.number === 7 ? { delayMs: 200 } : undefined;
    };
    // Four calls at once, all refused; then two trials that are refused too, and one that is not.
    expect(tally(words(await fleet.asker().ask(queriesOf(200), OPTIONS)))).toEqual({ permit: 200 });
    const gap = (n: number): number => (at[n] as number) - (at[n - 1] as number);
    expect([5, 6, 7].map(gap).every((ms) => ms > 90)).toBe(true);
    expect(gap(8)).toBeGreaterThan(190);
    expect(stub.calls.length).toBe(6 + 4);
  });

  test('a pause beyond all patience is no answer, for everybody and at once', async ({ expect, stub, fleet }) => {
    stub.behave = () => ({ status: 429, headers: { 'retry-after': '3600' }, body: fault('rate_limit_exceeded') });
    const answers = await fleet.asker().ask(queriesOf(60), OPTIONS);
    const others = await fleet.asker().ask(queriesOf(3, 100), OPTIONS);
    expect(tally(words([...answers, ...others]))).toEqual({ unavailable: 63 });
    expect(others[0]).toMatchObject({ held: true });
    expect(stub.calls.length).toBeLessThanOrEqual(2);
  });

  test('a budget is spent by queries asked, not by those answered from elsewhere, over all askers', async ({
    expect,
    stub,
    fleet,
  }) => {
    const askers = [fleet.asker(), fleet.asker()];
    const options = { ...OPTIONS, budget: 30 };
    const all = await Promise.all(askers.map((asker) => asker.ask(queriesOf(30), options)));
    expect(tally(all.flatMap(words))).toEqual({ permit: 60 });
    const more = await fleet.asker().ask([...queriesOf(30), ...queriesOf(5, 100)], options);
    expect(tally(words(more))).toEqual({ permit: 30, budget: 5 });
    expect(stub.asked.size).toBe(30);
  });

  test('an outage costs no budget: a query that comes back is charged once, and a new one beyond the budget is not asked', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const limits = { breakerThreshold: 2, breakerCooldownMs: 60_000, concurrency: 1, backoffMs: 10 };
    const askers = [fleet.asker(limits), fleet.asker(limits)] as const;
    const options = { ...OPTIONS, budget: 24 };
    const ask = async () => (await Promise.all(askers.map((asker) => asker.ask(queriesOf(24), options)))).flat();
    stub.behave = () => ({ status: 503, body: '<html></html>' });
    for (let outage = 0; outage < 3; outage++) {
      expect(tally(words(await ask()))).toEqual({ unavailable: 48 });
      await expect.poll(async () => (await upstreamOf(server))?.breaker).toBe('open');
      await endRest(server);
    }
    stub.behave = () => undefined;
    expect(tally(words(await ask()))).toEqual({ permit: 48 });
    expect(await server.redis.scard(`${FLEET_KEY}:spent:epoch-1`)).toBe(24);
    expect(words(await askers[0].ask(queriesOf(1, 24), options))).toEqual(['budget']);
    expect(stub.asked.has('query 24')).toBe(false);
  });

  test('through an outage a budget below the distinct queries stops exactly there, and retries are not charged', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const asker = fleet.asker({ breakerThreshold: 3, breakerCooldownMs: 60_000, concurrency: 1, backoffMs: 10 });
    const options = { ...OPTIONS, budget: 10 };
    stub.behave = () => ({ status: 503, body: '<html></html>' });
    expect(tally(words(await asker.ask(queriesOf(24), options)))).toEqual({ unavailable: 10, budget: 14 });
    await endRest(server);
    let failing = 1;
    stub.behave = (call) =>
      call.queries.length > 1 && failing-- > 0 ? { status: 503, body: '<html></html>' } : undefined;
    expect(tally(words(await asker.ask(queriesOf(24), options)))).toEqual({ permit: 10, budget: 14 });
    expect(stub.asked.size).toBe(10);
  });
});

describe.concurrent('batches', () => {
  test('a size that is refused is halved, and the whole fleet remembers', async ({ expect, stub, fleet }) => {
    stub.behave = (call) => (call.queries.length > 12 ? { status: 413, body: fault('payload_too_large') } : undefined);
    expect(tally(words(await fleet.asker({ concurrency: 1 }).ask(queriesOf(50), OPTIONS)))).toEqual({ permit: 50 });
    const before = stub.calls.length;
    await fleet.asker().ask(queriesOf(24, 100), OPTIONS);
    expect(stub.calls.slice(before).map((call) => call.queries.length)).toEqual([12, 12]);
    expect(fleet.log.map((line) => line.message + line.detail)).toEqual([
      'verifier batches halved25',
      'verifier batches halved12',
    ]);
  });

  test('one query that is too large alone is unreadable, and costs neither the others nor the size of batches', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const large = 'x'.repeat(300_000);
    const queries = queriesOf(50).map((query, i) => (i === 7 ? queryOf(large) : query));
    stub.behave = (call) =>
      call.queries.includes(large) ? { status: 413, body: fault('payload_too_large') } : undefined;
    const answers = await fleet.asker().ask(queries, OPTIONS);
    expect(words(answers)[7]).toBe('unreadable');
    expect(tally(words(answers))).toEqual({ permit: 49, unreadable: 1 });
    // Whoever waits has its answer before the fleet has taken note.
    await expect.poll(async () => (await upstreamOf(server))?.batchSize).toBe(50);
  });

  test('where there is no batch path every query goes alone, and the whole fleet remembers', async ({
    expect,
    stub,
    fleet,
  }) => {
    stub.behave = (call) => (call.single ? undefined : { status: 404, body: 'Not Found' });
    expect(tally(words(await fleet.asker({ concurrency: 1 }).ask(queriesOf(20), OPTIONS)))).toEqual({ permit: 20 });
    await fleet.asker().ask(queriesOf(2, 50), OPTIONS);
    expect(stub.calls.filter((call) => !call.single).length).toBe(1);
    expect(stub.calls.filter((call) => call.single).length).toBe(22);
  });

  test(
    'a query that makes its call hang is found in two more calls, and the others are answered',
    TIMED,
    async ({ expect, stub, fleet }) => {
      stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
      // One call at a time: none is asked again in parts while it is still out.
      const limits = { callTimeoutMs: 1_500, tries: 3, backoffMs: 20, concurrency: 1 };
      const answers = await fleet.asker(limits).ask(queriesOf(50), OPTIONS);
      expect(tally(words(answers))).toEqual({ permit: 49, unavailable: 1 });
      expect(stub.asked.get('query 7')).toBe(3);
      const sizes = stub.calls.filter((call) => call.queries.includes('query 7')).map((call) => call.queries.length);
      expect([sizes[0], sizes[2]]).toEqual([50, 1]);
      expect(sizes[1]).toBeLessThanOrEqual(7);
    },
  );

  test('a broken item is asked again alone; the others keep their answers', async ({ expect, stub, fleet }) => {
    let broken = 1;
    stub.behave = () => ({
      items: (query) => (query === 'query 3' && broken-- > 0 ? { code: 'internal_error', message: 'x' } : null),
    });
    expect(tally(words(await fleet.asker().ask(queriesOf(10), OPTIONS)))).toEqual({ permit: 10 });
    expect(stub.calls.map((call) => call.queries.length)).toEqual([10, 1]);
  });
});

describe.concurrent('the breaker', () => {
  const down = { status: 503, body: '<html>no healthy instance</html>' };
  const limits = { breakerThreshold: 5, breakerCooldownMs: 60_000, concurrency: 1, backoffMs: 20 };

  test('opens once for the fleet, probes once, closes once; meanwhile nobody calls and kept answers are given', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const askers = Array.from({ length: 4 }, () => fleet.asker(limits));
    const [one] = askers as [(typeof askers)[0]];
    await one.ask(queriesOf(2), OPTIONS);
    stub.behave = () => down;
    const lost = await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(20, 100 + i * 20), OPTIONS)));
    expect(tally(lost.flatMap(words))).toEqual({ unavailable: 80 });
    expect(lost.flat().every((answer) => answer.kind === 'unavailable' && answer.held === true)).toBe(true);
    expect(stub.calls.length).toBe(1 + 5);
    const shut = await Promise.all(askers.map((asker) => asker.ask(queriesOf(4), { ...OPTIONS, deadlineMs: null })));
    expect(shut.map(words)).toEqual(new Array(4).fill(['permit', 'permit', 'unavailable', 'unavailable']));
    expect(stub.calls.length).toBe(6);
    await expect.poll(() => upstreamOf(server)).toMatchObject({ breaker: 'open', counters: { opened: 1 } });

    stub.behave = () => ({ delayMs: 100 });
    await endRest(server);
    const back = await Promise.all(askers.map((asker, i) => asker.ask(queriesOf(5, 500 + i * 5), OPTIONS)));
    expect(tally(back.flatMap(words))).toEqual({ permit: 20 });
    expect(stub.calls[6]?.queries.length).toBe(1);
    expect(fleet.log.map((line) => line.message)).toEqual([
      'verifier circuit open',
      'verifier circuit half open: one probe',
      'verifier circuit closed',
    ]);
    await expect.poll(() => upstreamOf(server)).toMatchObject({ breaker: 'closed' });
  });

  test('a probe that fails opens it again: one call, and an answer for everybody', async ({
    expect,
    server,
    stub,
    fleet,
  }) => {
    const asker = fleet.asker(limits);
    stub.behave = () => down;
    await asker.ask(queriesOf(3), OPTIONS);
    await endRest(server);
    const before = stub.calls.length;
    expect(tally(words(await asker.ask(queriesOf(30), OPTIONS)))).toEqual({ unavailable: 30 });
    expect(stub.calls.length - before).toBe(1);
  });

  test('garbage counts as failing', async ({ expect, server, stub, fleet }) => {
    stub.behave = () => ({ body: '<html>hello</html>' });
    const [answer] = await fleet.asker(limits).ask(queriesOf(1), OPTIONS);
    expect(answer).toMatchObject({ kind: 'unavailable', held: true });
    await expect.poll(async () => (await upstreamOf(server))?.breaker).toBe('open');
  });

  test('a key that is refused stops its own upstream only, for everybody', async ({ expect, stub, fleet }) => {
    stub.behave = () => ({ status: 401, body: fault('unauthorized') });
    expect(tally(words(await fleet.asker({ concurrency: 1 }).ask(queriesOf(500), OPTIONS)))).toEqual({
      misconfigured: 500,
    });
    expect(words(await fleet.asker().ask(queriesOf(1, 900), OPTIONS))).toEqual(['misconfigured']);
    expect(stub.calls.length).toBe(1);
    stub.behave = () => undefined;
    expect(words(await fleet.asker({}, { apiKey: 'at_other' }).ask(queriesOf(1), OPTIONS))).toEqual(['permit']);
    expect(words(await fleet.asker().ask(queriesOf(1), OPTIONS))).toEqual(['misconfigured']);
  });

  test('a refusal is believed for a while only', async ({ expect, stub, fleet }) => {
    stub.behave = () => ({ status: 401, body: fault('unauthorized') });
    const asker = fleet.asker({ refusalMs: 200 });
    expect(words(await asker.ask(queriesOf(1), OPTIONS))).toEqual(['misconfigured']);
    stub.behave = () => undefined;
    const permitted = async () => words(await asker.ask(queriesOf(1), OPTIONS))[0] === 'permit';
    await until('it is asked again', permitted);
  });
});
