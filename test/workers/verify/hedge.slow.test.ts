// A call that hangs, over real HTTP: its queries are asked again in smaller calls while it is still out.

import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished } from 'vitest';
import { type SimulatorOptions, startSimulator } from '../../../src/simulator/server.ts';
import type { AskOptions, FleetAsker } from '../../../src/workers/verify/fleet/asker.ts';
import type { FleetAnswer } from '../../../src/workers/verify/fleet/waits.ts';
import type { Query } from '../../../src/workers/verify/wire-request.ts';
import { type Fleet, fleetOfEach, OPTIONS, queriesOf, queryOf, tally, upstreamOf, words } from '../../support/fleet.ts';
import { gate } from '../../support/gate.ts';
import { TIMED } from '../../support/timed.ts';

const HANGS = { callTimeoutMs: 30_000, concurrency: 16 };

const test = fleetOfEach(HANGS);

/** Wants all, and the seventh for as long as it takes the others to have their answers: nobody may wait for it. */
async function allButTheSeventh(
  asker: FleetAsker,
  queries: readonly Query[],
  options: AskOptions = OPTIONS,
): Promise<FleetAnswer[]> {
  const stop = new AbortController();
  const asked = queries.map(async (query, i) => {
    const [answer] = await asker.ask([query], i === 7 ? { ...options, signal: stop.signal } : options);
    return answer as FleetAnswer;
  });
  await Promise.all(asked.filter((_, i) => i !== 7));
  stop.abort();
  return await Promise.all(asked);
}

describe('one hung query', TIMED, () => {
  test('of 256 does not hold 255, by a platform that usually answers at once', async ({ stub, fleet }) => {
    const asker = fleet.asker();
    // What is usual leaves the calls that do not hang two seconds before they count as if they did.
    stub.behave = () => ({ delayMs: 500 });
    await asker.ask(queriesOf(300, 1_000), OPTIONS);
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const answers = await allButTheSeventh(asker, queriesOf(256));
    expect(tally(words(answers))).toEqual({ permit: 255, unavailable: 1 });
    expect(answers[7]).toMatchObject({ kind: 'unavailable', detail: 'stopped' });
    // Its call in parts, and its part one by one: queries of other calls went once.
    const again = [...stub.asked].filter(([, times]) => times > 1).map(([query]) => query);
    expect(stub.asked.get('query 7')).toBe(3);
    expect(again.length).toBeLessThanOrEqual(50);
    expect([...stub.asked.values()].every((times) => times <= 3)).toBe(true);
  });

  test('does not spoil its neighbours by a short deadline, by a platform that nobody knows yet', async ({
    stub,
    fleet,
  }) => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    // Well below what a call may take before it counts as hanging.
    const asker = fleet.asker({ hedgeMs: 60_000 });
    const answers = await allButTheSeventh(asker, queriesOf(50), { ...OPTIONS, deadlineMs: 9_000 });
    expect(tally(words(answers))).toEqual({ permit: 49, unavailable: 1 });
  });

  test('holds one permit, not those of the calls that it spoiled', async ({ server, stub, fleet }) => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const asker = fleet.asker({ hedgeMs: 300 });
    const stop = new AbortController();
    const asked = asker.ask(queriesOf(50), { ...OPTIONS, deadlineMs: 60_000, signal: stop.signal });
    await expect.poll(() => stub.asked.get('query 7')).toBe(3);
    await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(1);
    stop.abort();
    expect(tally(words(await asked))).toEqual({ permit: 49, unavailable: 1 });
  });

  test('of another process spoils nothing here either, and each answer reaches whoever waits for it', async ({
    stub,
    fleet,
  }) => {
    stub.behave = (call) => (call.queries.includes('query 7') ? { hang: true } : undefined);
    const askers = [fleet.asker({ hedgeMs: 300 }), fleet.asker({ hedgeMs: 300 })];
    const all = await Promise.all(askers.map((asker) => allButTheSeventh(asker, queriesOf(50))));
    expect(all.map((answers) => tally(words(answers)))).toEqual([
      { permit: 49, unavailable: 1 },
      { permit: 49, unavailable: 1 },
    ]);
  });
});

test('the first answer counts, and one that comes late changes nothing', async ({ server, stub, fleet }) => {
  let release = 0;
  const answered = gate();
  stub.behave = (call) =>
    call.number === 1
      ? { after: answered.opened, items: () => ({ decision: 'late', proof_checked: true }) }
      : { items: () => ({ decision: `permit ${release++ > 0}`, proof_checked: true }) };
  const asker = fleet.asker({ hedgeMs: 300 });
  const answers = await asker.ask(queriesOf(20), OPTIONS);
  expect(words(answers).every((word) => word.startsWith('permit'))).toBe(true);
  answered.open();
  await expect.poll(async () => (await upstreamOf(server))?.inFlight).toBe(0);
  const kept = await fleet.asker().ask(queriesOf(20), OPTIONS);
  expect(kept.map((answer) => answer.cached)).toEqual(new Array(20).fill(true));
  expect(words(kept)).toEqual(words(answers));
});

describe('a platform that is slow for everybody', TIMED, () => {
  test('is not flooded: no query is asked more than three times, and most once', async ({ stub, fleet }) => {
    const asker = fleet.asker({ hedgeMs: 300 });
    const slow = gate();
    stub.behave = () => ({ after: slow.opened });
    const asking = asker.ask(queriesOf(256), { ...OPTIONS, deadlineMs: 60_000 });
    await expect.poll(() => Math.max(...stub.asked.values())).toBeGreaterThan(1);
    await delay(2_000);
    // One call is asked again, until something is answered.
    expect([...stub.asked.values()].filter((n) => n > 1).length).toBeLessThanOrEqual(50);
    slow.open();
    expect(tally(words(await asking))).toEqual({ permit: 256 });
    expect(Math.max(...stub.asked.values())).toBeLessThanOrEqual(3);
    expect(stub.most).toBeLessThanOrEqual(16);
  });

  test('is asked no faster than its rate, with parts counted in', async ({ stub, fleet }) => {
    let [calls, lastAt] = [0, 0];
    stub.behave = (call) => {
      calls++;
      lastAt = performance.now();
      return call.queries.includes('query 7') ? { hang: true } : undefined;
    };
    const asker = fleet.asker({ hedgeMs: 300, requestsPerSecond: 10 });
    const began = performance.now();
    const answers = await allButTheSeventh(asker, queriesOf(50));
    expect(tally(words(answers))).toEqual({ permit: 49, unavailable: 1 });
    expect(calls).toBeGreaterThan(9);
    expect(lastAt - began).toBeGreaterThanOrEqual((calls - 1) * 100 - 50);
  });

  test('with an open breaker is not asked again at all', async ({ stub, fleet }) => {
    const down = { status: 503, body: '<html></html>' };
    const asker = fleet.asker({ hedgeMs: 2_500, breakerThreshold: 1, breakerCooldownMs: 60_000 });
    stub.behave = (call) => (call.queries.length === 50 ? { hang: true } : down);
    const stop = new AbortController();
    const hung = asker.ask(queriesOf(50), { ...OPTIONS, signal: stop.signal });
    await expect.poll(() => stub.calls.length).toBe(1);
    await asker.ask(queriesOf(3, 100), OPTIONS);
    await delay(3_000);
    stop.abort();
    expect(tally(words(await hung))).toEqual({ unavailable: 50 });
    expect(stub.calls.length).toBe(2);
  });
});

describe('by the stand-in, told to misbehave', () => {
  const started = async (fleet: Fleet, misbehave: string): Promise<FleetAsker> => {
    const simulator = await startSimulator({ misbehave } as SimulatorOptions);
    onTestFinished(() => simulator.close());
    return fleet.asker({ hedgeMs: 400 }, { baseUrl: simulator.baseUrl });
  };

  test('a query that hangs whatever it travels with is the only one without an answer', async ({ fleet }) => {
    const asker = await started(fleet, JSON.stringify({ fail: [{ kind: 'hang', match: 'query 7"' }] }));
    const facts = { age: 20n, annual_income: 1_000n, resident: true, active_grant: false } as never;
    const queries = Array.from({ length: 120 }, (_, i) => queryOf(`query ${i}`, facts));
    const answers = await allButTheSeventh(asker, queries);
    expect(answers.flatMap((answer, i) => (answer.kind === 'unavailable' ? [i] : []))).toEqual([7]);
  });

  test('a batch that hangs once is answered by its parts', async ({ fleet }) => {
    const asker = await started(fleet, JSON.stringify({ fail: [{ kind: 'hang', first: 1, on: 'query-batch' }] }));
    const facts = { age: 20n, annual_income: 1_000n, resident: true, active_grant: false } as never;
    const queries = Array.from({ length: 50 }, (_, i) => queryOf(`query ${i}`, facts));
    const answers = await asker.ask(queries, OPTIONS);
    expect(answers.every((answer) => answer.kind !== 'unavailable')).toBe(true);
  });
});
