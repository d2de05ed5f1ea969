// A call that hangs, over real HTTP: its queries are asked again in smaller calls while it is still out.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../../src/simulator/server.ts';
import type { FleetAsker } from '../../../src/workers/verify/fleet/asker.ts';
import { readUpstreams } from '../../../src/workers/verify/fleet/upstream.ts';
import type { FleetAnswer } from '../../../src/workers/verify/fleet/waits.ts';
import { type Fleet, makeFleet, OPTIONS, queriesOf, queryOf, tally, words } from '../../support/fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';
import { type StubPlatform, startStub } from '../../support/stub-platform.ts';

const HANGS = { callTimeoutMs: 30_000, concurrency: 16 };
const TIMED = { ...OPTIONS, deadlineMs: 8_000 };

let server: TestRedis;
let stub: StubPlatform;
let fleet: Fleet;
beforeEach(async () => {
  server = await startRedis();
  stub = await startStub();
  fleet = makeFleet(server, stub.baseUrl, HANGS);
});
afterEach(async () => {
  await fleet.close();
  await stub.close();
  await server.close();
});

/** When each of the answers came, in the order in which they came; and the answers in the order asked. */
async function each(asker: FleetAsker, count: number, options = TIMED): Promise<[FleetAnswer[], number[]]> {
  const began = performance.now();
  const at: number[] = [];
  const answers = await Promise.all(
    queriesOf(count).map(async (query) => {
      const [answer] = await asker.ask([query], options);
      at.push(performance.now() - began);
      return answer as FleetAnswer;
    }),
  );
  return [answers, at];
}

describe('one hung query', () => {
  test('of 256 does not hold 255, by a platform that usually answers at once', async () => {
    const asker = fleet.asker();
    await asker.ask(queriesOf(300, 1_000), OPTIONS);
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const [answers, at] = await each(asker, 256);
    expect(tally(words(answers))).toEqual({ permit: 255, unavailable: 1 });
    expect(answers[7]).toMatchObject({ kind: 'unavailable', detail: 'no answer by the deadline' });
    // All the others had theirs long before the one that hangs was given up.
    expect(at[254]).toBeLessThan((at[255] as number) / 2);
    // Its call in parts, and its part one by one: queries of other calls went once.
    const again = [...stub.asked].filter(([, times]) => times > 1).map(([query]) => query);
    expect(stub.asked.get('query 7')).toBe(3);
    expect(again.length).toBeLessThanOrEqual(50);
    expect([...stub.asked.values()].every((times) => times <= 3)).toBe(true);
  });

  test('does not spoil its neighbours by a short deadline, by a platform that nobody knows yet', async () => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const answers = await fleet.asker().ask(queriesOf(50), { ...OPTIONS, deadlineMs: 3_000 });
    expect(tally(words(answers))).toEqual({ permit: 49, unavailable: 1 });
  });

  test('holds one permit, not those of the calls that it spoiled', async () => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const asker = fleet.asker({ hedgeMs: 300 });
    const asked = asker.ask(queriesOf(50), TIMED);
    await expect.poll(() => stub.asked.get('query 7'), { timeout: 5_000 }).toBe(3);
    await expect.poll(async () => (await readUpstreams(server.redis))[0]?.inFlight, { timeout: 5_000 }).toBe(1);
    expect(tally(words(await asked))).toEqual({ permit: 49, unavailable: 1 });
  });

  test('of another process spoils nothing here either, and each answer reaches whoever waits for it', async () => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const askers = [fleet.asker({ hedgeMs: 300 }), fleet.asker({ hedgeMs: 300 })];
    const all = await Promise.all(askers.map((asker) => asker.ask(queriesOf(50), { ...OPTIONS, deadlineMs: 4_000 })));
    expect(all.map((answers) => tally(words(answers)))).toEqual([
      { permit: 49, unavailable: 1 },
      { permit: 49, unavailable: 1 },
    ]);
  });
});

test('the first answer counts, and one that comes late changes nothing', async () => {
  let release = 0;
  stub.behave = (call) =>
    call.number === 1
      ? { delayMs: 1_500, items: () => ({ decision: 'late', proof_checked: true }) }
      : { items: () => ({ decision: `permit ${release++ > 0}`, proof_checked: true }) };
  const asker = fleet.asker({ hedgeMs: 300 });
  const answers = await asker.ask(queriesOf(20), TIMED);
  expect(words(answers).every((word) => word.startsWith('permit'))).toBe(true);
  const kept = await fleet.asker().ask(queriesOf(20), OPTIONS);
  expect(kept.map((answer) => answer.cached)).toEqual(new Array(20).fill(true));
  expect(words(kept)).toEqual(words(answers));
});

describe('a platform that is slow for everybody', () => {
  test('is not flooded: no query is asked more than three times, and most once', async () => {
    const asker = fleet.asker({ hedgeMs: 300 });
    stub.behave = () => ({ delayMs: 2_500 });
    const answers = await asker.ask(queriesOf(256), { ...OPTIONS, deadlineMs: 20_000 });
    expect(tally(words(answers))).toEqual({ permit: 256 });
    const times = [...stub.asked.values()];
    expect(Math.max(...times)).toBeLessThanOrEqual(3);
    expect(times.filter((n) => n > 1).length).toBeLessThanOrEqual(50);
    expect(stub.most).toBeLessThanOrEqual(16);
  });

  test('is asked no faster than its rate, with parts counted in', async () => {
    const at: number[] = [];
    stub.behave = (call) => {
      at.push(performance.now());
      return call.queries.includes('query 7') ? { hang: true } : undefined;
    };
    const asker = fleet.asker({ hedgeMs: 300, requestsPerSecond: 10 });
    const answers = await asker.ask(queriesOf(50), { ...OPTIONS, deadlineMs: 6_000 });
    expect(tally(words(answers))).toEqual({ permit: 49, unavailable: 1 });
    const gaps = at.slice(1).map((t, i) => t - (at[i] as number));
    expect(gaps.reduce((sum, gap) => sum + gap, 0)).toBeGreaterThanOrEqual((at.length - 1) * 100 - 50);
  });

  test('with an open breaker is not asked again at all', async () => {
    const down = { status: 503, body: '<html></html>' };
    const asker = fleet.asker({ hedgeMs: 400, breakerThreshold: 1, breakerCooldownMs: 60_000 });
    stub.behave = (call) => (call.queries.length === 50 ? { hang: true } : down);
    const hung = asker.ask(queriesOf(50), { ...OPTIONS, deadlineMs: 2_000 });
    await expect.poll(() => stub.calls.length).toBe(1);
    await asker.ask(queriesOf(3, 100), OPTIONS);
    expect(tally(words(await hung))).toEqual({ unavailable: 50 });
    expect(stub.calls.length).toBe(2);
  });
});

describe('by the stand-in, told to misbehave', () => {
  let simulator: Simulator;
  const started = async (misbehave: string): Promise<FleetAsker> => {
    simulator = await startSimulator({ misbehave } as SimulatorOptions);
    return fleet.asker({ hedgeMs: 400 }, { baseUrl: simulator.baseUrl });
  };
  afterEach(() => simulator.close());

  test('a query that hangs whatever it travels with is the only one without an answer', async () => {
    const asker = await started(JSON.stringify({ fail: [{ kind: 'hang', match: 'query 7"' }] }));
    const facts = { age: 20n, annual_income: 1_000n, resident: true, active_grant: false } as never;
    const queries = Array.from({ length: 120 }, (_, i) => queryOf(`query ${i}`, facts));
    const answers = await asker.ask(queries, { ...OPTIONS, deadlineMs: 5_000 });
    expect(answers.flatMap((answer, i) => (answer.kind === 'unavailable' ? [i] : []))).toEqual([7]);
  });

  test('a batch that hangs once is answered by its parts', async () => {
    const asker = await started(JSON.stringify({ fail: [{ kind: 'hang', first: 1, on: 'query-batch' }] }));
    const facts = { age: 20n, annual_income: 1_000n, resident: true, active_grant: false } as never;
    const queries = Array.from({ length: 50 }, (_, i) => queryOf(`query ${i}`, facts));
    const answers = await asker.ask(queries, { ...OPTIONS, deadlineMs: 10_000 });
    expect(answers.every((answer) => answer.kind !== 'unavailable')).toBe(true);
  });
});
