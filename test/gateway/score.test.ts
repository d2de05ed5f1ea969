import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { call, completion, FLOOR, post, startGateway, type TestGateway } from '../support/gateway-fixture.ts';

let simulator: Simulator;
let gateway: TestGateway;

beforeEach(async () => {
  simulator = await startSimulator();
  gateway = await startGateway({ baseUrl: simulator.baseUrl });
});
afterEach(async () => {
  await gateway.close();
  await simulator.close();
});

const score = (body: unknown, headers: Record<string, string> = {}) => post(`${gateway.url}/v1/score`, body, headers);
const batch = (completions: unknown[], more: object = {}) => ({
  prompts: completions.map(() => 'p'),
  completions,
  ...more,
});

describe('what is scored', () => {
  test('rewards and outcomes come in the order asked, equal queries are asked once', async () => {
    const { status, json } = await score(
      batch([completion(30), completion(30, 'deny'), 'I would say permit', completion(30), 7], {
        metadata: [{ gold: 'permit' }, { gold: 'permit' }, null, { gold: 'permit' }, null],
      }),
    );
    expect(status).toBe(200);
    const [right, wrong, unreadable, again, odd] = json.rewards;
    expect(right).toBeGreaterThan(wrong);
    expect(wrong).toBeGreaterThan(unreadable);
    expect([unreadable, odd]).toEqual([FLOOR, FLOOR]);
    expect(again).toBe(right);
    expect(json.outcomes.map((one: { index: number; status: string }) => [one.index, one.status])).toEqual(
      [0, 1, 2, 3, 4].map((index) => [index, 'completed']),
    );
    expect(json.outcomes[0].report).toMatchObject({ proof_checked: true, decision: 'permit' });
    expect(json.outcomes[0].cache_key).toMatch(/^[0-9a-f]{64}$/);
    expect(simulator.calls.queries).toBe(1);
  });

  test('messages are scored as their contents', async () => {
    const said = (content: string) => [{ role: 'assistant', content }];
    const plain = await score(batch([completion(41)]));
    const messages = await score({ prompts: [[{ role: 'user', content: 'p' }]], completions: [said(completion(41))] });
    expect(messages.json.rewards).toEqual(plain.json.rewards);
  });

  test('a config is chosen by name; one that its platform refuses gives no result, and never a number', async () => {
    const { json } = await score(batch([completion(30)], { config: 'elsewhere' }));
    expect(json.rewards).toEqual([null]);
    expect(json.outcomes[0]).toMatchObject({ status: 'no_result', reward: null, cause: 'misconfigured' });
    const floored = await score(batch([completion(30)], { config: 'elsewhere', on_no_result: 'floor' }));
    expect(floored.json.rewards).toEqual([-0.5]);
    expect(floored.json.outcomes[0]).toMatchObject({ status: 'no_result', reward: null, cause: 'misconfigured' });
  });

  test('nothing to score is answered with nothing', async () => {
    expect((await score(batch([]))).json).toEqual({ rewards: [], outcomes: [] });
  });

  test('every number that leaves is finite, whatever a completion says', async () => {
    const wild = '<decision>{"classification": NaN, "facts": {"age": Infinity}}</decision>';
    const { text, json } = await score(batch([wild, '<decision>{"facts": {"age": 1e999}}</decision>', completion(20)]));
    expect(json.rewards.every(Number.isFinite)).toBe(true);
    expect(text).not.toMatch(/NaN|Infinity/);
  });

  test('completions are scored in an environment, one episode each', async () => {
    const env = { name: 'command', config: { files: { 'a.txt': 'x' }, task: 't', expected_stdout: 'x' }, seed: 3 };
    const { json } = await score({
      env,
      completions: ['```json\n["cat", "a.txt"]\n```', '```json\n["echo", "no"]\n```', { odd: true }],
    });
    expect(json.rewards).toEqual([1, -0.1, -0.1]);
    expect(json.outcomes[0]).toMatchObject({ status: 'completed', components: { env: 1 }, steps: 1 });
    const guess = await score({ env: { name: 'guess', config: { low: 5, high: 5 }, seed: 1 }, completions: ['5'] });
    expect(guess.json.rewards).toEqual([1]);
  });
});

describe('what is not a request', () => {
  test.each([
    ['no JSON', '{', 'not_json'],
    ['a list', '[]', 'wrong_shape'],
    ['no completions', { prompts: [] }, 'wrong_shape'],
    ['completions that are no list', { prompts: [], completions: 'x' }, 'wrong_shape'],
    ['lengths that differ', { prompts: ['a', 'b'], completions: ['x'] }, 'lengths_differ'],
    ['metadata of another length', { prompts: ['a'], completions: ['x'], metadata: [] }, 'lengths_differ'],
    ['a prompt that is a number', { prompts: [1], completions: ['x'] }, 'wrong_shape'],
    ['metadata that is text', { prompts: ['a'], completions: ['x'], metadata: ['m'] }, 'wrong_shape'],
    ['a field that is unknown', { prompts: [], completions: [], colour: 1 }, 'wrong_shape'],
    ['a deadline of nothing', { prompts: [], completions: [], deadline_ms: 0 }, 'wrong_shape'],
    ['a deadline that is text', { prompts: [], completions: [], deadline_ms: '5' }, 'wrong_shape'],
    ['a wish that is unknown', { prompts: [], completions: [], on_no_result: 'zero' }, 'wrong_shape'],
    ['a config that is unknown', { prompts: [], completions: [], config: 'x' }, 'config_unknown'],
    ['an environment that is unknown', { completions: [], env: { name: 'x' } }, 'wrong_shape'],
    [
      'a config that its environment would not take',
      { completions: [], env: { name: 'guess', config: { low: 'a' } } },
      'wrong_shape',
    ],
    ['a key twice', '{"prompts": [], "completions": [], "prompts": []}', 'not_json'],
  ])('%s is 400 with its place', async (_, body, code) => {
    const { status, json } = await score(body);
    expect([status, json.error.code]).toEqual([400, code]);
    expect(json.error.message).not.toBe('');
  });

  test('too many items are refused; as many as are taken are answered', { timeout: 150_000 }, async () => {
    const many = (n: number) => score({ prompts: Array(n).fill(''), completions: Array(n).fill('no block') });
    expect(await many(100_001)).toMatchObject({ status: 413, json: { error: { code: 'too_many_items' } } });
    const { status, json } = await many(100_000);
    expect(status).toBe(200);
    expect(json.rewards).toHaveLength(100_000);
    expect(new Set(json.rewards)).toEqual(new Set([FLOOR]));
  });

  test('a path or a method that is not there is named', async () => {
    expect(await call(`${gateway.url}/v1/nothing`)).toMatchObject({
      status: 404,
      json: { error: { code: 'not_found' } },
    });
    const wrong = await call(`${gateway.url}/v1/score`);
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST']);
  });
});

describe('a deadline is a promise', () => {
  test('one query that hangs does not hold the others: the answer is there with what is missing marked', {
    timeout: 150_000,
  }, async () => {
    const stub = await hangingOn(77);
    const slow = await startGateway({ baseUrl: stub.url, callTimeoutMs: 120_000 });
    try {
      const ages = Array.from({ length: 256 }, (_, i) => i + 1);
      const began = performance.now();
      const { json } = await post(
        `${slow.url}/v1/score`,
        batch(
          ages.map((age) => completion(age)),
          { deadline_ms: 6_000 },
        ),
      );
      expect(performance.now() - began).toBeLessThan(25_000);
      const lost = json.outcomes.filter((one: { status: string }) => one.status !== 'completed');
      expect(lost).toMatchObject([{ index: 76, cause: 'verifier_unavailable', reward: null }]);
      expect(json.rewards.filter((reward: number | null) => reward === null)).toHaveLength(1);
    } finally {
      await slow.close();
      stub.close();
    }
  });

  test('with a Redis that hangs, or is gone, the answer is there too, and readiness names it', async () => {
    const asked = async (age: number): Promise<void> => {
      const began = performance.now();
      const { status, json } = await score(batch([completion(age)], { deadline_ms: 1_000 }));
      expect(performance.now() - began).toBeLessThan(20_000);
      expect([status, json.outcomes[0].cause]).toEqual([200, 'verifier_unavailable']);
    };
    await score(batch([completion(33)]));
    await gateway.redis.redis.client('PAUSE', 60_000, 'ALL');
    await asked(34);
    await gateway.redis.kill();
    await asked(35);
    const ready = await call(`${gateway.url}/readyz`);
    expect(ready.status).toBe(503);
    expect(ready.json.missing.join()).toContain('Redis');
    expect((await call(`${gateway.url}/healthz`)).status).toBe(200);
    await gateway.redis.restart();
    expect((await score(batch([completion(36)]))).json.outcomes[0].status).toBe('completed');
    expect((await call(`${gateway.url}/readyz`)).status).toBe(200);
  });
});

/** A platform that never answers a call with the applicant of this age in it. */
async function hangingOn(age: number): Promise<{ url: string; close(): void }> {
  const server = http.createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as { queries?: { facts: { age: number } }[]; facts?: { age: number } };
    const queries = body.queries ?? [body as { facts: { age: number } }];
    if (queries.some((query) => query.facts.age === age)) return;
    const data = { proof_checked: true, decision: 'permit', explanation: { schema_version: 1 } };
    const answer = body.queries ? { results: queries.map((_, index) => ({ index, status: 'ok', data })) } : data;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ok: true, data: answer }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
