import http from 'node:http';
import net, { type AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Keys } from '../../src/gateway/keys.ts';
import { GatewayServer, refuseOpen } from '../../src/gateway/server.ts';
import { readConfig } from '../../src/shared/config.ts';
import { openLog } from '../../src/shared/log.ts';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { gate } from '../support/gate.ts';
import {
  call,
  completion,
  FLOOR,
  post,
  type Reply,
  startGateway,
  type TestGateway,
} from '../support/gateway-fixture.ts';
import { type StubPlatform, startStub } from '../support/stub-platform.ts';

const MB = 1024 * 1024;
let simulator: Simulator;
let gateway: TestGateway | null = null;
const platforms: StubPlatform[] = [];

async function start(options: object = {}, misbehave?: string): Promise<TestGateway> {
  simulator = await startSimulator(misbehave === undefined ? {} : { misbehave });
  gateway = await startGateway({ baseUrl: simulator.baseUrl, ...options });
  return gateway;
}
/** A platform that answers nothing until it is told to. */
async function gatedPlatform() {
  const opened = gate();
  const stub = await startStub(() => ({ after: opened.opened }));
  platforms.push(stub);
  return { baseUrl: stub.baseUrl, stub, opened };
}
afterEach(async () => {
  for (const platform of platforms.splice(0)) await platform.close();
  await gateway?.close();
  await simulator?.close();
  gateway = null;
});

const one = (age: number, more: object = {}) => ({ prompts: ['p'], completions: [completion(age)], ...more });

/** What comes back when these bytes are sent, until the other side closes. */
function raw(port: number, ...pieces: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    for (const piece of pieces) socket.write(piece);
  });
}

describe('who may call', () => {
  test('any of the keys, by any of the three ways; everything but health wants one', async () => {
    const { url } = await start({ keys: 'one-key, two-key' });
    const health = await call(`${url}/healthz`);
    expect([health.status, (await call(`${url}/readyz`)).status]).toEqual([200, 200]);
    for (const headers of [
      { authorization: 'Bearer one-key' },
      { authorization: 'Bearer two-key' },
      { 'x-api-key': 'two-key' },
      { authorization: `Basic ${Buffer.from('anybody:one-key').toString('base64')}` },
    ])
      expect((await post(`${url}/v1/score`, one(20), headers as Record<string, string>)).status).toBe(200);
    for (const headers of [
      {},
      { authorization: 'Bearer one-ke' },
      { 'x-api-key': 'one-key, two-key' },
      { authorization: 'Bearer no', 'x-api-key': 'one-key' },
    ])
      for (const path of ['/v1/score', '/v1/runs', '/metrics', '/', '/v1/runs/x/results', '/nowhere']) {
        const reply = await call(url + path, { headers: headers as Record<string, string> });
        expect([path, reply.status, reply.json.error.code]).toEqual([path, 401, 'unauthorized']);
        expect(reply.headers['www-authenticate']).toContain('Basic');
      }
  });

  test('without a key only loopback is bound, and no page of a browser gets in', async () => {
    const open = new Keys(null);
    expect(['127.0.0.1', 'localhost', '::1', '[::1]', '127.9.9.9'].map((host) => refuseOpen(host, open))).toEqual(
      Array(5).fill(null),
    );
    for (const host of ['0.0.0.0', '::', '10.0.0.1', 'example.org', '127.example.org', ''])
      expect(refuseOpen(host, open)).toContain('FARM_API_KEY');
    expect(refuseOpen('0.0.0.0', new Keys('a-key'))).toBeNull();
    expect(new Keys(' , ').open).toBe(true);
    const { url } = await start();
    for (const headers of [{ origin: 'http://evil.example' }, { host: 'evil.example' }])
      expect(await post(`${url}/v1/score`, one(20), headers as Record<string, string>)).toMatchObject({
        status: 403,
        json: { error: { code: 'not_this_machine' } },
      });
  });
});

describe('bodies', () => {
  test('gzip is read; what inflates beyond the bound is refused, and memory stays where it was', async () => {
    const { url } = await start({ limits: { bodyBytes: 4 * MB } });
    const packed = await post(`${url}/v1/score`, gzipSync(JSON.stringify(one(20))), { 'content-encoding': 'gzip' });
    expect(packed.json.outcomes[0].status).toBe('completed');
    const bomb = gzipSync(Buffer.alloc(512 * MB, 32));
    const before = process.memoryUsage().rss;
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => post(`${url}/v1/score`, bomb, { 'content-encoding': 'gzip' })),
    );
    expect(replies.map(({ status, json }) => [status, json.error.code])).toEqual(
      Array(8).fill([413, 'body_too_large']),
    );
    expect(process.memoryUsage().rss - before).toBeLessThan(128 * MB);
    const broken = await post(`${url}/v1/score`, 'not gzip', { 'content-encoding': 'gzip' });
    expect(broken).toMatchObject({ status: 400, json: { error: { code: 'body_encoding' } } });
    const odd = await post(`${url}/v1/score`, 'x', { 'content-encoding': 'zstd' });
    expect(odd).toMatchObject({ status: 415, json: { error: { code: 'encoding_unknown' } } });
  });

  test('a body that is too large is refused, whether it says so or not', async () => {
    const { url, port } = await start({ limits: { bodyBytes: MB } });
    expect(await post(`${url}/v1/score`, Buffer.alloc(2 * MB, 32))).toMatchObject({
      status: 413,
      json: { error: { code: 'body_too_large' } },
    });
    const chunk = `${MB.toString(16)}\r\n${' '.repeat(MB)}\r\n`;
    const answer = await raw(
      port,
      'POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n',
      chunk,
      chunk,
      '0\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
    expect((await post(`${url}/get_reward`, Buffer.alloc(2 * MB, 32))).json.error).toContain('larger');
  });

  test('slow senders are cut: of headers, of a body that stalls, of one that ends early', async () => {
    const { port } = await start({ limits: { bodyIdleMs: 400 }, headersMs: 1_500 });
    const head = 'POST /v1/score HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n';
    const [headers, body] = await Promise.all([raw(port, head), raw(port, `${head}\r\n`, '{"prompts"')]);
    expect(headers).toMatch(/^HTTP\/1.1 408 /);
    expect(body).toMatch(/^HTTP\/1.1 408 [\s\S]*body_slow/);
    const early = net.connect(port, '127.0.0.1');
    early.write(`${head}\r\n{"pro`);
    early.end();
    await new Promise((resolve) => early.resume().on('close', resolve));
    expect((await call(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
  });

  test('what is no HTTP is told so', async () => {
    const { port } = await start();
    expect(await raw(port, 'hello\r\n\r\n')).toMatch(/^HTTP\/1.1 400 [\s\S]*bad_request/);
    expect(await raw(port, `GET / HTTP/1.1\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`)).toMatch(/^HTTP\/1.1 431 /);
    expect(
      await raw(port, 'POST /v1/score HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'),
    ).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe('beyond its capacity', () => {
  test('/v1/score is told to come back, while everything else lives on', async () => {
    const { baseUrl, opened } = await gatedPlatform();
    const { url } = await start({ baseUrl, limits: { samples: 4, requests: 3 } });
    const held = [1, 2].map((age) =>
      post(`${url}/v1/score`, { prompts: ['', ''], completions: [completion(age), completion(age + 10)] }),
    );
    await expect
      .poll(async () => (await call(`${url}/metrics`)).text)
      .toContain('farm_gateway_samples_inside{call="score"} 4');
    const refused = await post(`${url}/v1/score`, one(50));
    expect([refused.status, refused.json.error.code]).toEqual([429, 'busy']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const third = post(`${url}/v1/score`, { ...one(3), completions: ['no block'] });
    const rewards = await post(`${url}/get_reward`, { query: ['no block'] });
    expect([rewards.status, (await call(`${url}/healthz`)).status]).toEqual([200, 200]);
    expect((await third).status).toBe(429);
    opened.open();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
    expect((await post(`${url}/v1/score`, { prompts: [''], completions: ['no block'] })).json.rewards).toEqual([FLOOR]);
  });

  test('bodies beyond the memory that it has are refused; of /get_reward they wait', async () => {
    const { baseUrl, opened } = await gatedPlatform();
    const { url } = await start({ baseUrl, limits: { bytes: MB } });
    const big = (age: number) => ({ prompts: ['x'.repeat(700_000)], completions: [completion(age)] });
    const first = post(`${url}/v1/score`, big(1));
    await expect
      .poll(async () => (await call(`${url}/metrics`)).text)
      .toMatch(/farm_gateway_body_bytes\{call="score"\} 7\d{5}/);
    expect((await post(`${url}/v1/score`, big(2))).status).toBe(429);
    opened.open();
    expect((await first).status).toBe(200);
    expect((await post(`${url}/v1/score`, big(3))).status).toBe(200);
    expect((await call(`${url}/metrics`)).text).toContain('farm_gateway_body_bytes{call="score"} 0');
    const long = JSON.stringify({ query: ['x'.repeat(700_000)] });
    const both = await Promise.all([post(`${url}/get_reward`, long), post(`${url}/get_reward`, `${long} `)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200]);
  });
});

describe('callers that go, and that come back', () => {
  test('a caller that drops out cancels its work', async () => {
    const { url } = await start({}, '{"fail": [{"kind": "hang"}]}');
    const request = http.request(`${url}/v1/score`, { method: 'POST', agent: false });
    request.on('error', () => {});
    request.end(JSON.stringify(one(20)));
    const inside = async (): Promise<string> => (await call(`${url}/metrics`)).text;
    await expect.poll(inside).toContain('farm_gateway_samples_inside{call="score"} 1');
    request.destroy();
    await expect.poll(inside).toContain('farm_gateway_samples_inside{call="score"} 0');
    expect(await inside()).toContain('farm_gateway_requests_total{call="score",status="499"} 1');
  });

  test('an Idempotency-Key joins the request under way, gets the kept answer, and belongs to one request', async () => {
    const { url } = await start({ verifier: { cache: false } }, '{"latency_ms": 200}');
    const key = { 'idempotency-key': 'step-7/batch-0' };
    const [a, b] = (await Promise.all([
      post(`${url}/v1/score`, one(20), key),
      post(`${url}/v1/score`, one(20), key),
    ])) as [Reply, Reply];
    const later = await post(`${url}/v1/score`, one(20), key);
    expect([b.text, later.text]).toEqual([a.text, a.text]);
    expect([later.headers['idempotent-replayed'], simulator.calls.queries]).toEqual(['true', 1]);
    expect(await post(`${url}/v1/score`, one(21), key)).toMatchObject({
      status: 422,
      json: { error: { code: 'idempotency_mismatch' } },
    });
    expect((await post(`${url}/v1/score`, one(21), { 'idempotency-key': 'x'.repeat(257) })).status).toBe(400);
  });

  test('a repetition has less time left, and is the same request all the same', async () => {
    const { url } = await start();
    const key = { 'idempotency-key': 'less-time' };
    const first = await post(`${url}/v1/score`, one(20, { deadline_ms: 30_000 }), key);
    const again = await post(`${url}/v1/score`, one(20, { deadline_ms: 12_345 }), key);
    expect([again.status, again.text]).toEqual([200, first.text]);
    // A column of that name does not hide it.
    const column = { metadata: [{ gold: 'permit', deadline_ms: 5 }] };
    const other = { 'idempotency-key': 'a-column' };
    const named = await post(`${url}/v1/score`, one(20, { ...column, deadline_ms: 30_000 }), other);
    const repeated = await post(`${url}/v1/score`, one(20, { ...column, deadline_ms: 12_345 }), other);
    expect([repeated.status, repeated.text]).toEqual([200, named.text]);
  });

  test('a caller that was cut off finds its work still under way by its key', async () => {
    const { url } = await start({ verifier: { cache: false } }, '{"latency_ms": 500}');
    const key = { 'idempotency-key': 'again' };
    const request = http.request(`${url}/v1/score`, { method: 'POST', agent: false, headers: key });
    request.on('error', () => {});
    request.end(JSON.stringify(one(20)));
    await expect.poll(() => simulator.calls.query + simulator.calls.batch).toBe(1);
    request.destroy();
    expect((await post(`${url}/v1/score`, one(20), key)).json.outcomes[0].status).toBe('completed');
    expect(simulator.calls.query + simulator.calls.batch).toBe(1);
  });
});

describe('secrets', () => {
  const CANARY = 'at_canary_6b1f0c';
  const OWN = 'own_canary_93aa17';
  let said: string[] = [];

  beforeEach(() => {
    said = [];
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      said.push(String(text));
      return true;
    });
    vi.stubEnv('LOG_LEVEL', 'debug');
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  /** Everything that callers, operators and Redis get to see. */
  async function seenOf({ url, redis }: TestGateway, deadline_ms: number): Promise<string> {
    const auth = { authorization: `Bearer ${OWN}` };
    const seen = [
      await post(`${url}/v1/score`, one(20, { deadline_ms }), auth),
      await post(`${url}/v1/score`, one(20, { deadline_ms }), { authorization: `Bearer ${OWN}x` }),
      await post(`${url}/v1/score`, '{', auth),
      await post(`${url}/get_reward`, { query: [completion(20)] }, auth),
      await call(`${url}/metrics`, { headers: auth }),
      await call(`${url}/`, { headers: auth }),
      await call(`${url}/nowhere?key=x`, { headers: auth }),
    ];
    const kept: string[] = [];
    for (const name of await redis.redis.keys('*'))
      kept.push(name, (await redis.redis.dumpBuffer(name))?.toString('latin1') ?? '');
    return [...seen.map((reply) => reply.text + JSON.stringify(reply.headers)), ...said, ...kept].join('\n');
  }
  const short = { rewardAnswerMs: 1_000 };

  test.each(['unauthorized', 'proxy_503', 'garbage', 'cut_body', 'not_found'])(
    'keys stand in no answer, log, metric or Redis: %s',
    async (kind) => {
      const fail = JSON.stringify({ fail: [{ kind }] });
      expect(await seenOf(await start({ apiKey: CANARY, keys: OWN, limits: short }, fail), 700)).not.toContain(
        'canary',
      );
    },
  );

  test.each([
    [
      200,
      (key: string) => ({
        ok: true,
        data: { proof_checked: true, decision: key, proof_summary: key, explanation: {} },
      }),
    ],
    [401, (key: string) => ({ ok: false, error: { code: 'unauthorized', message: `${key} is no key` } })],
    [
      503,
      (key: string) => ({ ok: false, error: { code: 'service_unavailable', message: key, rejected_facts: [key] } }),
    ],
    [500, (key: string) => ({ ok: false, error: { code: `internal_${key}`, message: key } })],
  ])('not even where the platform says them: %i', async (status, answer) => {
    const echo = http.createServer((request, response) => {
      request.resume();
      response.writeHead(request.url?.endsWith('batch') ? 404 : status, { 'content-type': 'application/json' });
      response.end(request.url?.endsWith('batch') ? '' : JSON.stringify(answer(request.headers.authorization ?? '')));
    });
    await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(echo.address() as AddressInfo).port}`;
    try {
      const limits = status === 200 ? {} : short;
      const seen = await seenOf(
        await start({ baseUrl, apiKey: CANARY, keys: OWN, limits }),
        status === 200 ? 20_000 : 700,
      );
      expect(seen).not.toContain('canary');
      if (status === 200) expect(seen).toContain('Bearer [redacted]');
    } finally {
      echo.close();
      echo.closeAllConnections();
    }
  });
});

test('a stop lets what is under way end, takes nothing new, and frees the port at once', async () => {
  const { baseUrl, stub, opened } = await gatedPlatform();
  const { url, port, server, redis } = await start({ baseUrl });
  const agent = new http.Agent({ keepAlive: true });
  const body = { method: 'POST', body: JSON.stringify(one(20)), agent };
  const under = call(`${url}/v1/score`, body);
  await expect.poll(() => stub.calls.length).toBe(1);
  const draining = server.drain(50_000, new AbortController().signal);
  await expect(call(`${url}/healthz`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const next = http.createServer((_, response) => response.end('next'));
  await new Promise<void>((resolve) => next.listen(port, '127.0.0.1', resolve));
  opened.open();
  expect((await under).json.outcomes[0].status).toBe('completed');
  await draining;
  expect((await call(url)).text).toBe('next');
  next.close();
  agent.destroy();
  expect(await redis.redis.ping()).toBe('PONG');
});

test('what comes before the gateway is ready is held, and then served', async () => {
  const log = openLog({ ...readConfig(), logLevel: 'silent' }, 'gateway');
  const server = await GatewayServer.bind({ host: '127.0.0.1', port: 0, keys: new Keys(null), log });
  try {
    const early = call(`${server.url}/v1/runs`);
    const ready = await call(`${server.url}/readyz`);
    expect([ready.status, ready.json]).toEqual([503, { ready: false, missing: ['the gateway starts'], without: [] }]);
    server.open({
      serve: async (exchange) => exchange.json(200, '"served"'),
      readiness: async () => ({ missing: [], without: [] }),
      drain: () => {},
    });
    expect((await early).json).toBe('served');
    expect((await call(`${server.url}/readyz`)).status).toBe(200);
  } finally {
    await server.drain(0, AbortSignal.abort());
  }
});
