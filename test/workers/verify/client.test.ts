import { afterEach, describe, expect, test } from 'vitest';
import { toValue } from '../../../src/shared/json/json.ts';
import type { ValueMap } from '../../../src/shared/json/value.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/server.ts';
import { type ClientOptions, VerifierClient } from '../../../src/workers/verify/client.ts';
import type { Query } from '../../../src/workers/verify/wire-request.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const KEY = 'at_secret_0123456789';

async function setUp(misbehave: object = {}, options: Partial<ClientOptions> = {}) {
  const simulator: Simulator = await startSimulator({ misbehave: JSON.stringify(misbehave) });
  const sleeps: number[] = [];
  const client = new VerifierClient({
    baseUrl: simulator.baseUrl,
    platformId: 1n,
    apiKey: KEY,
    concurrency: 2,
    random: () => 0,
    sleep: async (ms) => {
      sleeps.push(ms);
    },
    ...options,
  });
  closing.push(
    () => simulator.close(),
    () => client.close(),
  );
  return { simulator, client, sleeps };
}

function query(age: number, more: object = {}): Query {
  const facts = toValue({ age, annual_income: 20000, resident: true, active_grant: false, ...more }) as ValueMap;
  return { query: `age ${age}`, facts, relations: null, predictions: null };
}
const queries = (count: number): Query[] => Array.from({ length: count }, (_, i) => query(i));
const expected = (count: number): string[] => Array.from({ length: count }, (_, i) => (i >= 18 ? 'permit' : 'deny'));

async function decisions(client: VerifierClient, asked: Query[]): Promise<unknown[]> {
  return (await client.ask(asked)).map((one) => (one.kind === 'verdict' ? one.data.get('decision') : one.kind));
}

describe('asking', () => {
  test('120 queries take three batches and come back in order', async () => {
    const { client, simulator } = await setUp();
    expect(await decisions(client, queries(120))).toEqual(expected(120));
    expect(simulator.calls).toMatchObject({ batch: 3, query: 0, queries: 120 });
  });

  test('what several callers want is sent together, and an equal query once', async () => {
    const { client, simulator } = await setUp();
    const asked = [...queries(20), ...queries(20)];
    const all = await Promise.all(asked.map((one) => client.ask([one])));
    expect(all.map(([one]) => one?.kind)).toEqual(new Array(40).fill('verdict'));
    expect(simulator.calls).toMatchObject({ batch: 1, queries: 20 });
  });

  test('no more calls are in flight than allowed, whoever asks', async () => {
    const { client, simulator } = await setUp({ latency_ms: 20 }, { concurrency: 2 });
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, simulator.calls.inFlight);
    }, 2);
    await Promise.all([client.ask(queries(200)), client.ask(queries(300))]);
    clearInterval(watch);
    expect(most).toBe(2);
  });

  test('a batch that is too big is halved until it fits, and the size is remembered', async () => {
    const { client, simulator } = await setUp({ max_batch: 10 }, { concurrency: 1 });
    expect(await decisions(client, queries(50))).toEqual(expected(50));
    const before = simulator.calls.batch;
    expect(await decisions(client, queries(12))).toEqual(expected(12));
    expect(simulator.calls.batch - before).toBe(2);
  });

  test('a server without the batch path is asked one by one, and not asked for batches again', async () => {
    const { client, simulator } = await setUp({ fail: [{ kind: 'no_batch', on: 'query-batch' }] }, { concurrency: 1 });
    expect(await decisions(client, queries(20))).toEqual(expected(20));
    expect(await decisions(client, queries(2))).toEqual(expected(2));
    expect(simulator.calls).toMatchObject({ batch: 1, query: 22 });
  });

  test('a refusal is an answer, and names the rejected facts', async () => {
    const { client } = await setUp();
    const [answer] = await client.ask([query(20, { weather: 'fog' })]);
    expect(answer).toMatchObject({ kind: 'denial' });
    expect(answer?.kind === 'denial' && (answer.denial.rejectedFacts as ValueMap[])[0]?.get('field')).toBe('weather');
  });
});

describe('a platform in trouble', () => {
  test.each(['proxy_503', 'garbage', 'cut_body', 'internal_error', 'backend_unavailable', 'unavailable', 'reset'])(
    'after two calls with %s the answers are right',
    async (kind) => {
      const { client, sleeps } = await setUp({ fail: [{ kind, first: 2 }] }, { concurrency: 1 });
      expect(await decisions(client, queries(30))).toEqual(expected(30));
      expect(sleeps.filter((ms) => ms > 0)).toEqual([500, 1000]);
    },
  );

  test('one that never answers is no answer after five tries, never a verdict', async () => {
    const { client, simulator, sleeps } = await setUp({ fail: [{ kind: 'proxy_503' }] });
    expect(await decisions(client, queries(3))).toEqual(['unavailable', 'unavailable', 'unavailable']);
    expect(simulator.calls.batch).toBe(5);
    expect(sleeps.filter((ms) => ms > 0)).toEqual([500, 1000, 2000, 4000]);
  });

  test('a call that hangs ends at its timeout', async () => {
    const { client } = await setUp({ fail: [{ kind: 'hang', first: 1 }] }, { callTimeoutMs: 150 });
    expect(await decisions(client, queries(2))).toEqual(expected(2));
  });

  test('one broken item is asked again alone; the others keep their answers', async () => {
    const { client, simulator } = await setUp({ fail: [{ kind: 'internal_error', item: 3, first: 1 }] });
    expect(await decisions(client, queries(10))).toEqual(expected(10));
    expect(simulator.calls).toMatchObject({ batch: 2, queries: 11 });
  });

  test('a request that is not understood is no answer, and is not repeated', async () => {
    const { client, simulator } = await setUp({ fail: [{ kind: 'not_understood' }] });
    const [answer] = await client.ask(queries(1));
    expect(answer).toMatchObject({ kind: 'unavailable', detail: expect.stringContaining('unsupported_media_type') });
    expect(simulator.calls.batch).toBe(1);
  });
});

describe('limits and refusals', () => {
  test('a rate limit is waited for as long as it says, and is no failure', async () => {
    const waits: number[] = [];
    const { client } = await setUp(
      { fail: [{ kind: 'rate_limit', first: 8, retry_after_s: 2 }] },
      { concurrency: 1, onRateLimit: (ms) => waits.push(ms) },
    );
    expect(await decisions(client, queries(1))).toEqual(['deny']);
    expect(waits).toEqual(new Array(8).fill(2000));
  });

  test('a rate limit beyond all patience is no answer', async () => {
    const { client, simulator } = await setUp(
      { fail: [{ kind: 'rate_limit', retry_after_s: 3600 }] },
      { concurrency: 1 },
    );
    expect(await decisions(client, queries(60))).toEqual(new Array(60).fill('unavailable'));
    expect(simulator.calls.batch).toBe(1);
  });

  test.each(['unauthorized', 'forbidden', 'not_found'])('%s stops at once: one call for 500 queries', async (kind) => {
    const { client, simulator } = await setUp({ fail: [{ kind }] }, { concurrency: 1 });
    expect(new Set(await decisions(client, queries(500)))).toEqual(new Set(['misconfigured']));
    expect(simulator.calls.batch + simulator.calls.query).toBe(1);
  });

  test('a refusal is not for ever: it may be mended while the client lives', async () => {
    let now = 1_000_000;
    const { client } = await setUp({ fail: [{ kind: 'forbidden', first: 1 }] }, { now: () => now });
    expect(await decisions(client, queries(1))).toEqual(['misconfigured']);
    expect(await decisions(client, queries(1))).toEqual(['misconfigured']);
    now += 31_000;
    expect(await decisions(client, queries(1))).toEqual(['deny']);
  });

  test('the key is in no answer and no detail, even where the platform echoes it', async () => {
    const { client } = await setUp();
    const answers = await client.ask([{ ...query(20), query: `say ${KEY}` }, query(20, { [KEY]: KEY })]);
    expect(
      JSON.stringify(answers, (_, x) => (x instanceof Map ? [...x] : typeof x === 'bigint' ? String(x) : x)),
    ).not.toContain(KEY);
  });

  test('an address that is none is a wrong configuration', async () => {
    const { client } = await setUp({}, { baseUrl: 'None' });
    expect(await decisions(client, queries(2))).toEqual(['misconfigured', 'misconfigured']);
  });

  test('a stop ends the waiting', async () => {
    const stop = new AbortController();
    const { client } = await setUp({ fail: [{ kind: 'hang' }] }, { signal: stop.signal });
    setTimeout(() => stop.abort(), 50);
    expect(await decisions(client, queries(2))).toEqual(['unavailable', 'unavailable']);
  });
});
