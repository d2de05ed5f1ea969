// Thousands of malformed requests to every call that takes a body: each is answered with what is wrong, or for what it
// is, none with a fault of ours, and the gateway is the same afterwards. FARM_REQUESTS=from-to tries other numbers.

import { deflateSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { call, completion, post, startGateway, type TestGateway } from '../support/gateway-fixture.ts';
import { Seeded } from '../support/seeded.ts';

const [FROM, TO] = (process.env.FARM_REQUESTS ?? '0-6000').split('-').map(Number) as [number, number];
const AT_ONCE = 16;
const MB = 1024 * 1024;

let simulator: Simulator;
let gateway: TestGateway;
beforeEach(async () => {
  simulator = await startSimulator();
  gateway = await startGateway({ baseUrl: simulator.baseUrl, limits: { boxes: 2 } });
});
afterEach(async () => {
  await gateway.close();
  await simulator.close();
});

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const ODD = [
  'null',
  'true',
  '0',
  '-1',
  '1.5',
  '1e999',
  'NaN',
  'Infinity',
  '9'.repeat(400),
  '""',
  '"x"',
  '"\\ud800"',
  '"\\u0000"',
  '[]',
  '{}',
  '[[]]',
  '[null]',
  '[1,"a",{}]',
  '{"a":1,"a":2}',
  deep(5),
  deep(800),
  deep(5_000),
  '"',
  '{',
  '[1,',
  '01',
  "'x'",
  'undefined',
];

const score = JSON.stringify({
  prompts: ['p', 'q'],
  completions: [completion(20), 'x'],
  metadata: [{ gold: 'permit' }, null],
  deadline_ms: 5_000,
});
const episode = JSON.stringify({
  completions: ['3'],
  env: { name: 'guess', config: { low: 1, high: 9 }, seed: 1 },
  deadline_ms: 5_000,
});
const reward = JSON.stringify({ query: ['p<decision>{}</decision>'], prompts: ['p'], labels: ['permit'] });
const spec = JSON.stringify({
  name: 'n',
  group_size: 1,
  tasks: [{ id: 't', env: 'guess', config: { low: 1, high: 1 } }],
  policy: { kind: 'scripted', actions: [1] },
});

/** A sound text with one thing done to it. */
function spoiled(random: Seeded, sound: string): string {
  const values = [...sound.matchAll(/"(?:[^"\\]|\\.)*"|-?\d+|null|\[|\{/g)];
  const chosen = random.pick(values);
  const [before, after] = [sound.slice(0, chosen.index), sound.slice(chosen.index + chosen[0].length)];
  return random.pick<() => string>([
    () => sound.slice(0, random.below(sound.length)),
    () => `${before}${random.pick(ODD)}${after}`,
    () => `${before}${after}`,
    () => `{"${random.pick(['x', '__proto__', 'config', 'env', 'seed', ''])}":${random.pick(ODD)},${sound.slice(1)}`,
    () => `${sound}${random.pick(ODD)}`,
    () => random.pick(ODD),
    () => random.bytes(random.below(500)).toString('latin1'),
  ])();
}

function bytesOf(random: Seeded, text: string): { body: Buffer; headers: Record<string, string> } {
  const plain = { body: Buffer.from(text), headers: {} };
  const encoded = (encoding: string, body: Buffer) => ({ body, headers: { 'content-encoding': encoding } });
  return random.pick<() => typeof plain>([
    ...new Array(8).fill(() => plain),
    () => ({ body: Buffer.from(text, 'latin1'), headers: {} }),
    () => ({ body: Buffer.from(text, 'utf16le'), headers: {} }),
    () => ({
      body: Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(text)]),
      headers: { 'content-type': 'text/plain' },
    }),
    () => ({
      body: Buffer.from(text),
      headers: { 'content-encoding': random.pick(['br', 'gzip, gzip', 'identity', 'x', '__proto__']) },
    }),
    () => encoded('gzip', gzipSync(text)),
    () => encoded('gzip', gzipSync(text).subarray(0, 30)),
    () => encoded('deflate', deflateSync(text)),
    () => encoded(random.pick(['gzip', 'deflate']), random.bytes(60)),
    () => ({
      ...plain,
      headers: { 'idempotency-key': random.pick(['', ' ', 'a b', 'x'.repeat(300), 'same', 'same']) },
    }),
  ])();
}

interface Seen {
  number: number;
  path: string;
  status: number;
  text: string;
}

async function send(number: number): Promise<Seen> {
  const random = new Seeded(number);
  const [path, sound] = random.pick([
    ['/v1/score', score],
    ['/v1/score', episode],
    ['/get_reward', reward],
    ['/v1/runs', spec],
  ] as const);
  const { body, headers } = bytesOf(random, spoiled(random, sound));
  const query = random.chance(6)
    ? `?${random.pick(['config', 'no_result', 'run_id', 'x'])}=${random.pick(['', '%', '%00', '../x', 'grants', 'filter', 'a'.repeat(2_000)])}`
    : '';
  const { status, text } = await post(`${gateway.url}${path}${query}`, body, headers);
  return { number, path, status, text };
}

/** What is wrong with an answer; null where nothing is. */
function faultOf({ path, status, text }: Seen): string | null {
  if (status >= 500 && !(status === 503 && path === '/v1/runs')) return 'a fault of ours';
  // A number that is not finite would be no JSON.
  const said = JSON.parse(text) as { error: { code: string; message: string; hint: string } | string };
  if (status < 300) return null;
  if (path === '/get_reward')
    return typeof said.error === 'string' && said.error !== '' ? null : 'not the library’s error';
  const { code, message, hint } = said.error as { code: string; message: string; hint: string };
  return code && message && hint ? null : 'an error that does not say what is wrong';
}

test('thousands of malformed requests are each answered for what they are, none with a fault of ours', {
  timeout: 300_000 + (TO - FROM) * 20,
}, async () => {
  const statuses = new Map<number, number>();
  const wrong: string[] = [];
  let next = FROM;
  let memory = 0;
  const worker = async (): Promise<void> => {
    while (next < TO) {
      const seen = await send(next++);
      statuses.set(seen.status, (statuses.get(seen.status) ?? 0) + 1);
      const fault = faultOf(seen);
      if (fault) wrong.push(`${seen.number} ${seen.path} ${seen.status}: ${fault}: ${seen.text.slice(0, 200)}`);
      if (seen.number === FROM + Math.floor((TO - FROM) / 3)) memory = process.memoryUsage().rss;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(wrong.slice(0, 20)).toEqual([]);
  for (const status of [200, 400, 415]) expect(statuses.get(status) ?? 0, String(status)).toBeGreaterThan(10);
  expect((process.memoryUsage().rss - memory) / MB).toBeLessThan(200);
  const metrics = (await call(`${gateway.url}/metrics`)).text;
  for (const name of ['score', 'get_reward']) {
    expect(metrics).toContain(`farm_gateway_samples_inside{call="${name}"} 0\n`);
    expect(metrics).toContain(`farm_gateway_body_bytes{call="${name}"} 0\n`);
  }
  const good = await post(`${gateway.url}/v1/score`, score);
  expect([good.status, good.json.rewards.length]).toEqual([200, 2]);
});
