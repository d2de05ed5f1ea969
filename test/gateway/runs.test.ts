import http from 'node:http';
import { describe, expect, type TestContext, test, vi } from 'vitest';
import { Adopter } from '../../src/producer/adopter.ts';
import { fingerprint, readSettings, writeSettings } from '../../src/shared/ledger/run-settings.ts';
import { openLog } from '../../src/shared/log.ts';
import { announce, type RoleName } from '../../src/shared/presence.ts';
import { SHARED_REALM } from '../../src/shared/realm.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import type { Role, RoleContext } from '../../src/workers/role.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { call, completion, post, startGateway, type TestGateway } from '../support/gateway-fixture.ts';
import { until } from '../support/until.ts';

const spec = (tasks: number, more: object = {}) => ({
  name: 'guesses',
  group_size: 2,
  tasks: Array.from({ length: tasks }, (_, i) => ({
    id: `t${i}`,
    env: 'guess',
    config: { low: 1, high: 2, max_guesses: 2 },
  })),
  policy: { kind: 'scripted', actions: [1, 2] },
  ...more,
});
interface Stream {
  lines: string[];
  beats: number;
  ended: Promise<void>;
  stop(): void;
}
/** A gateway with a Redis and a stand-in of its own, and with workers if the test wants them. */
async function gatewayOf(
  { onTestFinished }: TestContext,
  options: { workers: boolean; adopts?: boolean; heartbeatMs?: number; needsWorkers?: boolean },
) {
  const simulator = await startSimulator();
  const gateway = await startGateway({
    baseUrl: simulator.baseUrl,
    adopts: options.adopts ?? options.workers,
    needsWorkers: options.needsWorkers ?? false,
    limits: { heartbeatMs: options.heartbeatMs ?? 10_000 },
  });
  const roles: Role[] = [];
  onTestFinished(async () => {
    for (const role of roles) await role.stop();
    await gateway.close();
    await simulator.close();
  });
  const seat = (worker: string): RoleContext => ({
    config: gateway.config,
    redis: gateway.redis.redis,
    place: gateway.redis.place,
    farmId: 'test',
    realm: SHARED_REALM,
    worker,
    slots: { rollout: 4, light: 4 },
    log: openLog({ ...gateway.config, logLevel: 'silent' }, 'test'),
  });
  const play = async (): Promise<void> => {
    const driver = createSubprocessDriver();
    roles.push(await startRolloutWorker(seat('rollout-1'), driver, async () => new Set(['rollout-1'])));
  };
  const collect = async (): Promise<void> => {
    roles.push(await startCollectWorker(seat('collect-1'), null));
  };
  if (options.workers) {
    await play();
    await collect();
  }
  const submit = (body: unknown, query = '') => post(`${gateway.url}/v1/runs${query}`, body);

  async function done(run: string): Promise<Record<string, unknown>> {
    return await vi.waitFor(
      async () => {
        const { json } = await call(`${gateway.url}/v1/runs/${run}`);
        expect(json.state).toBe('done');
        return json;
      },
      { timeout: 60_000, interval: 50 },
    );
  }

  function follow(run: string, after = ''): Stream {
    const stream: Stream = { lines: [], beats: 0, ended: Promise.resolve(), stop: () => request.destroy() };
    let rest = '';
    const request = http.get(`${gateway.url}/v1/runs/${run}/results?follow=1&after=${after}`, { agent: false });
    stream.ended = new Promise((resolve) => {
      request.on('error', () => resolve());
      request.on('response', (response) => {
        response.setEncoding('utf8').on('data', (text: string) => {
          const parts = (rest + text).split('\n');
          rest = parts.pop() ?? '';
          for (const part of parts) part === '' ? stream.beats++ : stream.lines.push(part);
        });
        response.on('error', () => resolve()).on('end', () => resolve());
      });
    });
    return stream;
  }

  return { gateway, simulator, play, collect, submit, done, follow };
}
const records = (stream: Stream) =>
  stream.lines.map((line) => JSON.parse(line) as { cursor: string; group: number; event?: string });

describe.concurrent('submitting a run', () => {
  test('without workers it is refused, and nothing is left of it', async (context) => {
    const { gateway, submit } = await gatewayOf(context, { workers: false });
    const { status, json } = await submit(spec(1), '?run_id=early');
    expect([status, json.error.code]).toEqual([503, 'no_workers']);
    expect(json.error.message).toContain('rollout, collect');
    expect((await call(`${gateway.url}/v1/runs/early`)).status).toBe(404);
  });

  const verified = {
    tasks: [{ id: 'q', env: 'text', config: {}, prompt: 'May this be?', metadata: { gold: 'permit' } }],
    policy: { kind: 'scripted', actions: ['yes'] },
  };
  const boxed = {
    tasks: [{ id: 'b', env: 'command', config: { files: {}, task: 'Say hi.', expected_stdout: 'hi' } }],
    policy: { kind: 'scripted', actions: [['echo', 'hi']] },
  };
  const domain = (base_url: string) => ({
    domain: { platform_id: 1, base_url, query_template: 'May this be? {facts}', parser: 'json_block' },
  });
  const presences: { why: string; slots: object; key?: string; body: (baseUrl: string) => object; says: RegExp }[] = [
    {
      why: 'none that has slots for its boxes',
      slots: { light: 4 },
      body: () => boxed,
      says: /^there is no worker for rollout$/,
    },
    {
      why: 'none that holds the gateway’s key',
      slots: { rollout: 4, light: 4, verify: 4 },
      key: 'b'.repeat(16),
      body: (url) => ({ ...verified, ...domain(url) }),
      says: /^there is no worker for rollout, verify with this gateway’s AmberTrace key \([0-9a-f]{6}; theirs: bbbbbb\)$/,
    },
    {
      why: 'none that tells of its key',
      slots: { rollout: 4, light: 4, verify: 4 },
      body: (url) => ({ ...verified, ...domain(url) }),
      says: /theirs: none that they tell of\)$/,
    },
  ];
  test.for(presences)(
    'with workers, and $why, it is refused before it waits',
    async ({ slots, key, body, says }, context) => {
      const { gateway, simulator, submit } = await gatewayOf(context, { workers: false });
      const { redis } = gateway.redis;
      const seat = { realm: SHARED_REALM, slots, ...(key === undefined ? {} : { key }) };
      const there = [
        await announce(redis, { ...seat, role: 'rollout', worker: 'w-1' }),
        await announce(redis, { ...seat, slots: {}, role: 'collect', worker: 'w-2' }),
      ];
      const { status, json } = await submit(spec(1, body(simulator.baseUrl)));
      await Promise.all(there.map((one) => one.stop()));
      expect([status, json.error?.code], JSON.stringify(json)).toEqual([503, 'no_workers']);
      expect(json.error.message).toMatch(says);
    },
  );

  test('as JSON, as YAML, or beside its id; the gateway drives it to its end', {
    timeout: 150_000,
  }, async (context) => {
    const { gateway, submit, done } = await gatewayOf(context, { workers: true });
    const first = await submit(spec(3), '?run_id=by-query');
    expect([first.status, first.json.run, first.json.groups.planned]).toEqual([201, 'by-query', 3]);
    const yaml =
      'name: y\ngroup_size: 2\ntasks:\n- {id: a, env: guess, config: {low: 1, high: 1}}\npolicy: {kind: scripted, actions: [1]}\n';
    expect((await submit({ run_id: 'as-text', spec: yaml })).status).toBe(201);
    expect((await submit(yaml, '?run_id=as-yaml')).status).toBe(201);
    const status = await done('by-query');
    expect(status).toMatchObject({ groups: { planned: 3, closed: 3 }, members: { completed: 6, no_result: 0 } });
    await done('as-text');
    await done('as-yaml');
    expect((await call(`${gateway.url}/v1/runs`)).json.runs.map((r: { run: string }) => r.run)).toEqual([
      'as-text',
      'as-yaml',
      'by-query',
    ]);
  });

  test('from its acceptance to its end it is running, never stopped', { timeout: 150_000 }, async (context) => {
    const { gateway, play, collect, submit } = await gatewayOf(context, { workers: false });
    await play();
    await collect();
    const accepted = await submit(spec(3), '?run_id=steady');
    expect([accepted.status, accepted.json.state]).toEqual([201, 'running']);
    expect(accepted.json.reason).toContain('waiting for a process that drives it');
    // It waits for as long as nobody drives it, and says so.
    expect((await call(`${gateway.url}/v1/runs/steady`)).json.state).toBe('running');
    const { redis, config } = gateway;
    const log = openLog({ ...config, logLevel: 'silent' }, 'test');
    const adopter = new Adopter({ redis: redis.redis, place: redis.place, realm: SHARED_REALM, log });
    try {
      const states = new Set<string>();
      await vi.waitFor(
        async () => {
          const { json } = await call(`${gateway.url}/v1/runs/steady`);
          states.add(json.state);
          expect(json.state).toBe('done');
        },
        { timeout: 60_000, interval: 10 },
      );
      expect([...states]).toEqual(['running', 'done']);
    } finally {
      await adopter.drain();
    }
  });

  test('again under the same id it goes on; with another spec it is a conflict', {
    timeout: 150_000,
  }, async (context) => {
    const { submit, done } = await gatewayOf(context, { workers: true });
    await submit(spec(1), '?run_id=same');
    await done('same');
    expect((await submit(spec(1), '?run_id=same')).status).toBe(200);
    const changed = await submit(spec(2), '?run_id=same');
    expect([changed.status, changed.json.error.code]).toEqual([409, 'spec_changed']);
  });

  test('under the id of a run that was opened with another key, that key is what its workers have to hold', async (context) => {
    const { gateway, simulator, submit } = await gatewayOf(context, { workers: false });
    const { redis } = gateway.redis;
    const body = { ...verified, ...domain(simulator.baseUrl) };
    const slots = { rollout: 4, light: 4, verify: 4 };
    const holding = async (key: string): Promise<() => Promise<void>> =>
      (await announce(redis, { realm: SHARED_REALM, role: 'rollout', worker: `w-${key}`, slots, key })).stop;
    const collector = await announce(redis, { realm: SHARED_REALM, role: 'collect', worker: 'w', slots: {} });
    const gone = await holding(fingerprint(gateway.config.ambertraceApiKey) as string);
    expect((await submit(spec(1, body), '?run_id=keyed')).status).toBe(201);
    await gone();
    const settings = readSettings((await redis.hget('farm:{keyed}:run', 'settings')) as string);
    const text = writeSettings({ ...settings, keyFingerprint: 'c'.repeat(16) });
    await redis.hset('farm:{keyed}:run', 'settings', text);
    const other = await holding('b'.repeat(16));
    const refused = await submit(spec(1, body), '?run_id=keyed');
    expect([refused.status, refused.json.error?.code]).toEqual([503, 'no_workers']);
    expect(refused.json.error.message).toMatch(/key that the run was opened with \(cccccc; theirs: bbbbbb\)$/);
    const first = await holding('c'.repeat(16));
    expect((await submit(spec(1, body), '?run_id=keyed')).status).toBe(200);
    await Promise.all([other(), first(), collector.stop()]);
  });

  test('completions stand in the spec itself', async (context) => {
    const { submit, done } = await gatewayOf(context, { workers: true });
    const lines = [
      { task_id: 't0', completion: '1' },
      { task_id: 't0', completion: '2' },
    ];
    const { status } = await submit(spec(1, { policy: { kind: 'completions', completions: lines } }), '?run_id=inline');
    expect(status).toBe(201);
    expect(await done('inline')).toMatchObject({ members: { completed: 2 } });
  });

  test.for<[string, object, string]>([
    ['a path of tasks', { tasks: '/etc/passwd' }, 'tasks'],
    ['a path of completions', { policy: { kind: 'completions', path: '/etc/passwd' } }, 'policy.path'],
    ['a store of its own', { store: '/tmp/elsewhere' }, 'store'],
    [
      'a verifier of its own, to which our key would go',
      { domain: { platform_id: 1, base_url: 'http://127.0.0.1:9' } },
      'domain.base_url',
    ],
    ['a size that is none', { group_size: 0 }, 'group_size'],
    ['a key that is unknown', { colour: 'red' }, 'colour'],
    ['a secret', { domain: { platform_id: 1, api_key: 'at_x' } }, 'api_key'],
  ])('%s is refused by its name, and shows no path of ours', async ([_, more, field], context) => {
    const { submit } = await gatewayOf(context, { workers: false });
    const { status, json } = await submit(spec(1, more));
    expect([status, json.error.code]).toEqual([400, 'spec_invalid']);
    expect(json.error.message).toContain(field);
    expect(json.error.message).not.toContain('farm-spec-');
  });

  test('an id that is none, a body that is none', async (context) => {
    const { submit } = await gatewayOf(context, { workers: true });
    expect((await submit(spec(1), '?run_id=../x')).json.error.code).toBe('run_id');
    for (const body of ['', '[1]', 'a: [', '{"spec": 3}']) expect((await submit(body)).status).toBe(400);
    const yaml = `name: x\n# ${'y'.repeat(1024 * 1024)}\n`;
    expect((await submit(yaml)).json.error.code).toBe('yaml_too_large');
  });

  test('one that is cancelled closes what it has, and says so', { timeout: 150_000 }, async (context) => {
    const { gateway, collect, submit, follow } = await gatewayOf(context, { workers: false, adopts: true });
    // Its members are played by nobody: it is not over before it is cancelled.
    const seat = { role: 'rollout', realm: SHARED_REALM, worker: 'w', slots: { rollout: 4, light: 4 } } as const;
    const { stop } = await announce(gateway.redis.redis, seat);
    context.onTestFinished(stop);
    await collect();
    expect((await submit(spec(400), '?run_id=stop-me')).status).toBe(201);
    const { status, json } = await call(`${gateway.url}/v1/runs/stop-me`, { method: 'DELETE' });
    expect([status, json.state]).toEqual([200, 'cancelled']);
    const stream = follow('stop-me');
    await stream.ended;
    expect(stream.lines).toHaveLength(400);
    expect((await call(`${gateway.url}/v1/runs/nobody`, { method: 'DELETE' })).status).toBe(404);
  });
});

describe.concurrent('readiness', () => {
  const ready = async (gateway: TestGateway) => {
    const { status, json } = await call(`${gateway.url}/readyz`);
    return { status, ...json };
  };

  test('with workers of its own it is there when they are, of the shared realm; then a run is taken at once', async (context) => {
    const { gateway, submit } = await gatewayOf(context, { workers: false, needsWorkers: true });
    const { redis } = gateway.redis;
    const seats: { stop(): Promise<void> }[] = [];
    const seat = async (role: RoleName, realm = SHARED_REALM): Promise<void> => {
      seats.push(await announce(redis, { role, realm, worker: `${role}-${realm}`, slots: { light: 1, verify: 1 } }));
    };
    await seat('rollout', 'run.another');
    expect(await ready(gateway)).toMatchObject({
      status: 503,
      ready: false,
      missing: ['rollout', 'collect', 'verify'].map((role) => expect.stringContaining(`no ${role} worker`)),
    });
    await seat('rollout');
    await seat('verify');
    await expect
      .poll(async () => (await ready(gateway)).missing)
      .toEqual([expect.stringContaining('no collect worker')]);
    await seat('collect');
    // Where this process stood still for as long as a word of a worker's counts, they are there again with the next.
    await expect.poll(() => ready(gateway)).toEqual({ status: 200, ready: true, missing: [], without: [] });
    await expect.poll(async () => (await submit(spec(1), '?run_id=at-once')).status).toBe(201);
    for (const one of seats) await one.stop();
    expect((await ready(gateway)).status).toBe(503);
  });

  test('alone it is ready for scores, and names the workers that runs would need', async (context) => {
    const { gateway } = await gatewayOf(context, { workers: false });
    const { status, missing, without } = await ready(gateway);
    expect([status, missing, without.length]).toEqual([200, [], 3]);
    expect(without.join()).toContain('no rollout worker');
  });
});

describe.concurrent('results', () => {
  test('the same lines for all who follow, from any cursor, through one tailer', {
    timeout: 150_000,
  }, async (context) => {
    const { gateway, submit, done, follow } = await gatewayOf(context, { workers: true });
    await submit(spec(40), '?run_id=followed');
    const streams = [follow('followed'), follow('followed'), follow('followed')];
    await vi.waitFor(() => expect(streams.every((stream) => stream.lines.length > 5)).toBe(true), { timeout: 60_000 });
    const late = follow('followed', records(streams[0] as Stream)[2]?.cursor);
    await Promise.all([...streams, late].map((stream) => stream.ended));
    const all = streams[0]?.lines ?? [];
    expect(new Set(records(streams[0] as Stream).map((record) => record.group)).size).toBe(40);
    expect(streams.map((stream) => stream.lines)).toEqual([all, all, all]);
    expect(late.lines).toEqual(all.slice(3));
    await done('followed');
    const plain = await call(`${gateway.url}/v1/runs/followed/results`);
    expect(plain.headers['content-type']).toBe('application/x-ndjson');
    expect(plain.text).toBe(all.map((line) => `${line}\n`).join(''));
  });

  test('a cursor that is none of this run, a run that is none', { timeout: 150_000 }, async (context) => {
    const { gateway, submit, done } = await gatewayOf(context, { workers: true });
    await submit(spec(1), '?run_id=short');
    await done('short');
    for (const cursor of ['x', '0-1', 'deadbeef-1'])
      expect(await call(`${gateway.url}/v1/runs/short/results?after=${cursor}`)).toMatchObject({
        status: 400,
        json: { error: { code: 'cursor' } },
      });
    const [record] = (await call(`${gateway.url}/v1/runs/short/results`)).text.split('\n');
    const cursor = (JSON.parse(record as string) as { cursor: string }).cursor;
    expect((await call(`${gateway.url}/v1/runs/short/results?after=${cursor}`)).text).toBe('');
    const future = cursor.replace(/\d+$/, '9');
    expect((await call(`${gateway.url}/v1/runs/short/results?after=${future}`)).status).toBe(400);
    expect((await call(`${gateway.url}/v1/runs/nobody/results`)).status).toBe(404);
  });

  test('a quiet line beats, and a stop ends it with a record that says where to go on', {
    timeout: 150_000,
  }, async (context) => {
    const { gateway, submit, follow } = await gatewayOf(context, { workers: true, heartbeatMs: 100 });
    await submit(
      spec(2, {
        tasks: [
          { id: 'quick', env: 'guess', config: { low: 1, high: 1 } },
          { id: 'slow', env: 'command', config: { files: {}, task: 't', expected_stdout: 'x' } },
        ],
        policy: { kind: 'scripted', actions: [['sleep', '28']] },
      }),
      '?run_id=quiet',
    );
    const stream = follow('quiet');
    await vi.waitFor(() => expect([stream.lines.length, stream.beats > 2]).toEqual([1, true]), { timeout: 25_000 });
    const draining = gateway.server.drain(5_000, new AbortController().signal);
    await stream.ended;
    await draining;
    const [first, last] = records(stream);
    expect(last).toMatchObject({ event: 'drain', cursor: first?.cursor });
  });
});

describe.concurrent('what people and Prometheus see', () => {
  test('runs, workers, queues, upstreams and what is wanted', { timeout: 150_000 }, async (context) => {
    const { gateway, submit, done } = await gatewayOf(context, { workers: true });
    await post(`${gateway.url}/v1/score`, { prompts: ['p'], completions: [completion(30)] });
    await submit(spec(1), '?run_id=seen');
    await done('seen');
    // Figures are a second old at most.
    const { text, headers } = await until('the figures show the run', async () => {
      const reply = await call(`${gateway.url}/metrics`);
      return reply.text.includes('farm_runs{state="done"} 1\n') && reply;
    });
    expect(headers['content-type']).toContain('version=0.0.4');
    for (const line of [
      'farm_figures_ok 1',
      'farm_runs{state="done"} 1',
      'farm_workers{role="rollout"} 1',
      'farm_wanted_workers 0',
      'farm_queue_jobs{queue="rollout_waiting"} 0',
      'farm_gateway_samples_total{call="score",status="completed"} 1',
      'farm_gateway_requests_total{call="score",status="200"} 1',
    ])
      expect(text.split('\n')).toContain(line);
    expect(text).toMatch(/farm_upstream_breaker_open\{upstream="http:[^"]+"\} 0/);
    expect(text).toMatch(/farm_upstream_queries_total\{[^}]+\} 1\n/);
    for (const line of text.trim().split('\n'))
      expect(line).toMatch(/^# (?:HELP|TYPE) \w+ |^\w+(?:\{[^}]*\})? -?[\d.e+-]+$/);
    const page = await call(`${gateway.url}/`);
    expect(page.headers['content-type']).toContain('text/html');
    expect(page.text).toContain('seen');
    expect(page.text).not.toMatch(/<script|src=|href=/);
  });
});
