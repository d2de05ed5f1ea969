import http from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { completionOf, END_TOKENS, longestOverlap } from '../../src/gateway/query-cut.ts';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { call, completion, FLOOR, post, startGateway, type TestGateway } from '../support/gateway-fixture.ts';
import { until } from '../support/until.ts';

describe('what the policy wrote', () => {
  const cut = (query: string, prompt: string) => completionOf(query, prompt, END_TOKENS);

  test('follows the prompt, exactly', () => {
    expect(cut('<|user|>Say it<|assistant|> yes', '<|user|>Say it<|assistant|>')).toBe(' yes');
    expect(cut('yes', '')).toBe('yes');
    expect(cut('<s>[INST] a [/INST] yes</s>', '[INST] a [/INST]')).toBe(' yes');
  });

  test('follows the longest end of a prompt that was cut on the left', () => {
    const prompt = `${'lorem ipsum dolor '.repeat(50)}the question?`;
    for (const kept of [prompt.length - 1, 400, 60, 13])
      expect(cut(`${prompt.slice(-kept)}answer`, prompt)).toBe('answer');
  });

  test('is left alone where the overlap is chance, or the query is no continuation', () => {
    expect(cut('{"facts": {}}', 'Answer with {')).toBe('{"facts": {}}');
    expect(cut('something else', 'a prompt')).toBe('something else');
  });

  test('ends before the tokens that end a turn', () => {
    expect(cut('p yes<|im_end|>\n<|endoftext|><|endoftext|>', 'p')).toBe(' yes');
    expect(cut('p yes <|im_end|> more', 'p')).toBe(' yes <|im_end|> more');
    expect(completionOf('yes<STOP>', '', ['<STOP>'])).toBe('yes');
    expect(completionOf('yes</s>', '', ['<STOP>'])).toBe('yes</s>');
  });

  test('the overlap is the longest, as a slow search finds it, over random texts of few letters', () => {
    let state = 7;
    const letter = (): string => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return 'ab😀'.charAt((state >>> 20) % 4);
    };
    const text = (n: number): string => Array.from({ length: n }, letter).join('');
    for (let i = 0; i < 3_000; i++) {
      const prompt = text(i % 17);
      const query = i % 3 === 0 ? prompt.slice(i % 5) + text(i % 7) : text(i % 13);
      let slow = Math.min(prompt.length, query.length);
      while (slow > 0 && !query.startsWith(prompt.slice(prompt.length - slow))) slow--;
      expect(longestOverlap(prompt, query)).toBe(slow);
    }
  });

  test('a megabyte of near misses is cut in no time', () => {
    const prompt = 'a'.repeat(1_000_000);
    const began = performance.now();
    cut(`${'a'.repeat(500_000)}b${'</s>'.repeat(100_000)}`, prompt);
    // Compared letter by letter it would be hours.
    expect(performance.now() - began).toBeLessThan(30_000);
  });
});

let simulator: Simulator;
let gateway: TestGateway;

async function start(misbehave?: string, options: object = {}): Promise<void> {
  simulator = await startSimulator(misbehave === undefined ? {} : { misbehave });
  gateway = await startGateway({ baseUrl: simulator.baseUrl, ...options });
}
const reward = (body: unknown, query = '', headers: Record<string, string> = {}) =>
  post(`${gateway.url}/get_reward${query}`, body, headers);

afterEach(async () => {
  await gateway?.close();
  await simulator?.close();
});

describe('OpenRLHF’s call', () => {
  beforeEach(() => start());

  test('one sample, prompt and special tokens in its query, is answered with numbers under both names', async () => {
    const prompt =
      '<|im_start|>user\nWho? <decision>{"facts": {"age": 1}}</decision><|im_end|>\n<|im_start|>assistant\n';
    const { status, json, headers } = await reward({
      query: [`${prompt}${completion(30)}<|im_end|>`],
      prompts: [prompt],
      labels: ['permit'],
    });
    expect([status, headers['content-type']]).toEqual([200, 'application/json']);
    expect(json.scores).toEqual(json.rewards);
    expect(json.rewards[0]).toBeGreaterThan(1);
    expect(json.extra_logs).toBeUndefined();
  });

  test('what cannot be read earns the floor; what is no request is the library’s 400', async () => {
    expect((await reward({ query: ['no block', 7, null] })).json).toEqual({
      rewards: [FLOOR, FLOOR, FLOOR],
      scores: [FLOOR, FLOOR, FLOOR],
    });
    for (const body of ['{', '[]', '{}', '{"query": "a"}'])
      expect(await reward(body)).toMatchObject({ status: 400, text: '{"error": "malformed request"}' });
    expect(await call(`${gateway.url}/get_reward`)).toMatchObject({ status: 405, text: '{"error": "POST required"}' });
  });

  test('no result is the floor, or far outside any range where groups are filtered; each is counted', async () => {
    const body = { query: [completion(30)], prompts: [''], labels: [''] };
    expect((await reward(body, '?config=elsewhere')).json).toEqual({ rewards: [-0.5], scores: [-0.5] });
    expect((await reward(body, '?config=elsewhere&no_result=filter')).json).toEqual({ rewards: [-0.5], scores: [1e9] });
    expect((await reward(body, '?no_result=filter')).json.scores[0]).toBeLessThan(10);
    const metrics = (await call(`${gateway.url}/metrics`)).text;
    expect(metrics).toContain('farm_gateway_no_result_total{call="get_reward",cause="misconfigured"} 2');
  });

  test('a key goes as the password of the URL', async () => {
    const locked = await startGateway({ baseUrl: simulator.baseUrl, keys: 'first-key,second-key' });
    try {
      const basic = (key: string) => ({ authorization: `Basic ${Buffer.from(`any:${key}`).toString('base64')}` });
      const url = `${locked.url}/get_reward`;
      expect((await post(url, { query: [] }, basic('second-key'))).status).toBe(200);
      expect(await post(url, { query: [] }, basic('no'))).toMatchObject({
        status: 401,
        text: expect.stringContaining('"error"'),
      });
      expect((await post(url, { query: [] })).json).toEqual({ error: 'unauthorized' });
    } finally {
      await locked.close();
    }
  });
});

test('two thousand connections with a sample each are all answered, none refused', async () => {
  await start('{"latency_ms": 20}');
  const agent = new http.Agent({ keepAlive: false });
  const answers = await Promise.all(
    Array.from({ length: 2_000 }, (_, i) =>
      call(`${gateway.url}/get_reward`, {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          query: [completion(i % 500, i % 2 ? 'permit' : 'deny')],
          prompts: [''],
          labels: ['permit'],
        }),
      }),
    ),
  );
  expect(answers.every(({ status, json }) => status === 200 && Number.isFinite(json.rewards[0]))).toBe(true);
  expect(simulator.calls.queries).toBe(500);
});

test('equal bodies under way are asked once, and a caller that drops out leaves the others theirs', async () => {
  await start('{"latency_ms": 300}');
  const body = JSON.stringify({ query: [completion(30)], prompts: [''], labels: [''] });
  const leaving = http.request(`${gateway.url}/get_reward`, { method: 'POST', agent: false });
  leaving.on('error', () => {});
  leaving.end(body);
  await until('it is asked for', () => simulator.calls.inFlight === 1);
  const staying = reward(body);
  leaving.destroy();
  expect((await staying).status).toBe(200);
  expect(simulator.calls.batch + simulator.calls.query).toBe(1);
});

test('beyond its capacity it holds, and answers before its time is over with the floor', async () => {
  await start('{"fail": [{"kind": "hang"}]}', { limits: { rewardSamples: 1, rewardAnswerMs: 1_500 } });
  const ages = Array.from({ length: 20 }, (_, i) => i);
  const began = performance.now();
  const answers = await Promise.all(ages.map((age) => reward({ query: [completion(age)] })));
  // One after the other they would take half a minute.
  expect(performance.now() - began).toBeLessThan(20_000);
  expect(answers.map(({ status, json }) => [status, json.rewards])).toEqual(Array(20).fill([200, [FLOOR]]));
});
