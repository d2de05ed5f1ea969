import http from 'node:http';
import { describe, expect, type TestContext, test } from 'vitest';
import { Episodes } from '../../src/gateway/episodes.ts';
import { InteractiveDesk } from '../../src/gateway/interactive-desk.ts';
import { OwnBoxes } from '../../src/gateway/own-boxes.ts';
import { readConfig } from '../../src/shared/config.ts';
import { InteractiveLane } from '../../src/shared/interactive/lane.ts';
import type { AskedEnvironment } from '../../src/shared/interactive/sample-outcome.ts';
import { parseJson } from '../../src/shared/json/json.ts';
import type { ValueMap } from '../../src/shared/json/value.ts';
import { openLog } from '../../src/shared/log.ts';
import { announce } from '../../src/shared/presence.ts';
import { SHARED_REALM } from '../../src/shared/realm.ts';
import { openRedis } from '../../src/shared/redis/connect.ts';
import type { SandboxDriver } from '../../src/shared/sandbox.ts';
import { ENVIRONMENT_CONFIGS } from '../../src/shared/spec/environment-config.ts';
import { InteractiveWorker } from '../../src/workers/rollout/interactive.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { post, startGateway as startTestGateway } from '../support/gateway-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

function asked(name: string, config: string): AskedEnvironment {
  return { name, config: ENVIRONMENT_CONFIGS.get(name)?.resolve(parseJson(config) as ValueMap) as ValueMap, seed: 1n };
}
const guess = asked('guess', '{"low": 1, "high": 9, "max_guesses": 3}');
const command = asked('command', '{"files": {"a.txt": "x"}, "task": "t", "expected_stdout": "x", "timeout": 9}');
const CAT = '["cat", "a.txt"]';
const never = new AbortController().signal;
const patience = (ms = 20_000, signal = never) => ({ until: performance.now() + ms, signal });

/** A Redis of the test's own, and who works in the lane on it; it is empty when the test is over. */
async function laneOf({ onTestFinished, expect }: TestContext) {
  const server = await startRedis();
  const closing: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const close of closing.splice(0).reverse()) await close();
    const left = (await server.redis.keys('farm:{lane*')).filter((key) => !/:[gr]:/.test(key));
    await server.close();
    expect(left).toEqual([]);
  });
  let workers = 0;

  /** A rollout worker's part of the lane, and its presence. */
  async function startWorker(driver: SandboxDriver = createSubprocessDriver(), slots = 2) {
    const redis = openRedis(server.place);
    const config = readConfig();
    const log = openLog({ ...config, logLevel: config.logLevel ?? 'silent' }, 'rollout');
    const worker = `w${++workers}`;
    const presence = await announce(redis, {
      role: 'rollout',
      realm: SHARED_REALM,
      worker,
      slots: { interactive: slots },
    });
    const more = { farmId: 'test', realm: SHARED_REALM, worker, slots: { interactive: slots }, log };
    const context = { config, redis, place: server.place, ...more };
    const role = new InteractiveWorker({ context, driver, slots: () => slots, enter: async () => () => {} });
    const leave = async (how: 'drain' | 'stop'): Promise<void> => {
      closing.splice(closing.indexOf(end), 1);
      await presence.stop();
      await role[how]();
      await driver.close();
      redis.disconnect();
    };
    const end = (): Promise<void> => leave('stop');
    closing.push(end);
    return { leave };
  }

  /** A gateway's part; without a driver it has no boxes of its own. */
  function startGateway(driver: SandboxDriver | null = null, commandTimeout = 20_000): Episodes {
    const redis = openRedis(server.place, { commandTimeout });
    const lane = new InteractiveDesk({ redis, place: server.place, realm: SHARED_REALM, elsewhere: driver !== null });
    const own = driver && new OwnBoxes({ openDriver: () => driver, slots: 2, worker: 'gateway' });
    const episodes = new Episodes({ lane, own });
    closing.push(async () => {
      await episodes.close();
      redis.disconnect();
    });
    return episodes;
  }

  async function waitingSamples(): Promise<number> {
    const lines = await server.redis.keys('farm:{lane*}:w:*');
    return (await Promise.all(lines.map((key) => server.redis.llen(key)))).reduce((sum, n) => sum + n, 0);
  }

  return { server, closing, startWorker, startGateway, waitingSamples };
}

const told = (outcomes: Awaited<ReturnType<Episodes['score']>>): unknown[] =>
  outcomes.map((one) => (one.status === 'completed' ? one.reward : one.cause));

describe.concurrent('samples in the interactive lane', () => {
  test('are scored by the rollout workers, in the order asked, whatever they contain', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    await startWorker();
    await startWorker();
    const episodes = startGateway();
    const odd = ['7', 'seven', '\ud800', '\u0000', '[[[', { not: 'text' }, null, 'x'.repeat(300_000)];
    const completions = odd.map((one) =>
      one !== null && typeof one === 'object' ? new Map(Object.entries(one)) : one,
    );
    const own = new Episodes({
      lane: null,
      own: new OwnBoxes({ openDriver: createSubprocessDriver, slots: 2, worker: 'o' }),
    });
    const expected = await own.score(guess, completions, patience());
    await own.close();
    expect(await episodes.score(guess, completions, patience())).toEqual(expected);
    const commands = [CAT, '["false"]', CAT, 'rm -rf /'];
    expect(told(await episodes.score(command, commands, patience()))).toEqual([1, -0.1, 1, -0.1]);
  });

  test('of a small request are not behind those of a large one, also from another gateway', async (context) => {
    const { server, startWorker, startGateway, waitingSamples } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 1);
    const [large, small, other] = [startGateway(), startGateway(), startGateway()];
    const order: string[] = [];
    const big = large.score(command, new Array(40).fill(CAT), patience()).then(() => order.push('large'));
    await until('the worker is busy', () => gate.waiting === 1);
    await until('the large one has filled its window', async () => (await waitingSamples()) >= 39);
    const one = small.score(command, [CAT], patience()).then(() => order.push('small'));
    const two = large.score(command, [CAT], patience()).then(() => order.push('same gateway'));
    const three = other.score(guess, ['1'], patience()).then(() => order.push('other'));
    await until('all four wait', async () => (await server.redis.llen('farm:{lane-v1:shared}:calls')) === 4);
    gate.release();
    await Promise.all([big, one, two, three]);
    expect(order.at(-1)).toBe('large');
  });

  test('whose box is lost are tried on once more, and after that there is no result', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    gate.state = 'down';
    await startWorker(gate, 2);
    const episodes = startGateway();
    expect(told(await episodes.score(command, [CAT, CAT], patience()))).toEqual(['sandbox_start', 'sandbox_start']);
  });

  test('that a stopping worker had are done by another', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    const first = await startWorker(gate, 2);
    const episodes = startGateway();
    const scored = episodes.score(command, [CAT, CAT, CAT], patience());
    await until('the first has two', () => gate.waiting === 2);
    await startWorker();
    await first.leave('stop');
    expect(told(await scored)).toEqual([1, 1, 1]);
  });

  test('that a draining worker has are finished by it', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    const first = await startWorker(gate, 2);
    const episodes = startGateway();
    const scored = episodes.score(command, [CAT, CAT, CAT], patience());
    await until('the first has two', () => gate.waiting === 2);
    const drained = first.leave('drain');
    gate.release();
    await drained;
    await startWorker();
    expect(told(await scored)).toEqual([1, 1, 1]);
  });

  test('say at the deadline what they were waiting for, and are given up', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 1);
    const episodes = startGateway();
    const outcomes = await episodes.score(command, [CAT, CAT], patience(2_500));
    expect(told(outcomes)).toEqual(['environment_silent', 'not_started']);
    await until('the worker has let go', () => gate.waiting === 0);
  });

  test('are cancelled when the caller goes, and the worker is free for others', async (context) => {
    const { startWorker, startGateway, waitingSamples } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 1);
    const episodes = startGateway();
    const caller = new AbortController();
    const dropped = episodes.score(command, new Array(20).fill(CAT), patience(20_000, caller.signal));
    await until('one is at work', () => gate.waiting === 1);
    caller.abort(new Error('gone'));
    await dropped;
    await until('it was let go', () => gate.waiting === 0);
    expect(await waitingSamples()).toBe(0);
    gate.release();
    expect(told(await episodes.score(command, [CAT], patience()))).toEqual([1]);
  });
});

describe.concurrent('over HTTP', () => {
  test('a caller that drops out takes its samples along; a repetition by its key finds them', async (context) => {
    const { server, closing, startWorker, waitingSamples } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 2);
    const gateway = await startTestGateway({ baseUrl: 'http://127.0.0.1:1', redis: server });
    closing.push(() => gateway.close());
    const env = { name: 'command', config: { files: { 'a.txt': 'x' }, task: 't', expected_stdout: 'x' } };
    const body = JSON.stringify({ env, completions: [CAT, CAT, CAT] });
    const send = (headers: Record<string, string> = {}): http.ClientRequest => {
      const request = http.request(`${gateway.url}/v1/score`, { method: 'POST', agent: false, headers });
      request.on('error', () => {}).end(body);
      return request;
    };
    const dropped = send();
    await until('two are at work', () => gate.waiting === 2);
    dropped.destroy();
    await until('they are let go', async () => gate.waiting === 0 && (await waitingSamples()) === 0);
    const key = { 'idempotency-key': 'env' };
    const cut = send(key);
    await until('two are at work again', () => gate.waiting === 2);
    cut.destroy();
    const again = post(`${gateway.url}/v1/score`, body, key);
    gate.release();
    expect((await again).json.rewards).toEqual([1, 1, 1]);
  });
});

describe.concurrent('without workers', () => {
  test('a gateway that has boxes of its own uses them, and workers that come take the rest', async (context) => {
    const { server, startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    const episodes = startGateway(gate);
    const scored = episodes.score(command, [CAT, CAT, CAT, CAT], patience());
    await until('its own boxes are asked for', () => gate.waiting === 2);
    await startWorker();
    const taken = new InteractiveLane(server.redis, SHARED_REALM);
    await until('the rest went over the lane', async () => episodes.waiting === 0 && !(await taken.someWait()));
    gate.release();
    expect(told(await scored)).toEqual([1, 1, 1, 1]);
  });

  test('a hundred thousand samples are answered by their deadline, with what is over', async (context) => {
    const { startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    const episodes = startGateway(gate);
    const began = performance.now();
    const outcomes = await episodes.score(command, new Array(100_000).fill(CAT), patience(2_500));
    expect(performance.now() - began).toBeLessThan(20_000);
    expect(new Set(told(outcomes).slice(0, 2))).toEqual(new Set(['environment_silent']));
    expect(new Set(told(outcomes).slice(2))).toEqual(new Set(['not_started']));
  });

  test('one that has none waits for workers until the deadline', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const episodes = startGateway();
    const [late] = await episodes.score(command, [CAT], patience(1_000));
    expect(late).toMatchObject({ cause: 'not_started', detail: 'no rollout worker is there' });
    const scored = episodes.score(command, [CAT], patience());
    await until('it waits', () => episodes.waiting === 1);
    await startWorker();
    expect(told(await scored)).toEqual([1]);
  });

  test('samples that the last worker left undone come back to the boxes of the gateway', async (context) => {
    const { startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    const last = await startWorker(gate, 1);
    const episodes = startGateway(createSubprocessDriver());
    const scored = episodes.score(command, [CAT, CAT, CAT], patience());
    await until('one is at work', () => gate.waiting === 1);
    await last.leave('stop');
    expect(told(await scored)).toEqual([1, 1, 1]);
  });
});

describe.concurrent('trouble', () => {
  test('a worker that dies with a sample, and is not heard of again, loses it to another within seconds', async (context) => {
    const { server, startWorker, startGateway } = await laneOf(context);
    const dead = new InteractiveLane(server.redis, SHARED_REALM, 400);
    const presence = await announce(server.redis, {
      role: 'rollout',
      realm: SHARED_REALM,
      worker: 'dead',
      slots: { interactive: 1 },
    });
    const episodes = startGateway();
    const scored = episodes.score(command, [CAT], patience());
    const taken = await until('it has the sample', () => dead.take('its token'));
    await presence.stop();
    await startWorker();
    expect(told(await scored)).toEqual([1]);
    // What it says afterwards changes nothing.
    await dead.settle(taken, '{"status":"completed","reward":99,"steps":1,"diagnostics":[]}');
  });

  test('a sample whose workers die under it again and again has no result', async (context) => {
    const { server, closing, startGateway } = await laneOf(context);
    const dead = new InteractiveLane(server.redis, SHARED_REALM, 400);
    const presence = await announce(server.redis, {
      role: 'rollout',
      realm: SHARED_REALM,
      worker: 'dead',
      slots: { interactive: 1 },
    });
    closing.push(() => presence.stop());
    const episodes = startGateway();
    const scored = episodes.score(command, [CAT], patience(60_000));
    for (const token of ['a', 'b', 'c']) await until(`${token} has it`, () => dead.take(token));
    const [outcome] = await scored;
    expect(outcome).toMatchObject({ cause: 'sandbox_lost', detail: expect.stringContaining('again and again') });
  });

  test('a Redis that forgets them, or goes away and comes back, costs no sample', async (context) => {
    const { server, startWorker, startGateway } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 2);
    const episodes = startGateway();
    const scored = episodes.score(command, [CAT, CAT, CAT], patience());
    await until('two are at work', () => gate.waiting === 2);
    await server.restart();
    await server.redis.del(...(await server.redis.keys('farm:{lane*')));
    gate.release();
    expect(told(await scored)).toEqual([1, 1, 1]);
  });

  test('a Redis that hangs holds no deadline up', async (context) => {
    const { server, startWorker, startGateway } = await laneOf(context);
    await startWorker();
    const episodes = startGateway(null, 90_000);
    expect(told(await episodes.score(command, [CAT], patience()))).toEqual([1]);
    server.process.kill('SIGSTOP');
    try {
      const began = performance.now();
      expect(told(await episodes.score(command, [CAT, CAT], patience(1_500)))).toEqual(['not_started', 'not_started']);
      expect(performance.now() - began).toBeLessThan(20_000);
    } finally {
      server.process.kill('SIGCONT');
    }
  });

  test.for([
    ['without boxes of its own the gateway has no result', null, 'sandbox_start'],
    ['with some it scores them itself', createSubprocessDriver, 1],
  ] as const)('a full Redis takes no samples: %s', async ([_, driver, expected], context) => {
    const { server, startWorker, startGateway } = await laneOf(context);
    await startWorker();
    const episodes = startGateway(driver === null ? null : driver());
    await server.redis.config('SET', 'maxmemory', '1mb');
    expect(told(await episodes.score(command, [CAT], patience()))).toEqual([expected]);
    await server.redis.config('SET', 'maxmemory', '0');
  });

  test('samples of a gateway that died are played no more', async (context) => {
    const { server, startWorker } = await laneOf(context);
    const gate = new GatedSandbox();
    await startWorker(gate, 1);
    const lane = new InteractiveLane(server.redis, SHARED_REALM);
    const shared = '{"name":"command","config":{},"seed":0}';
    await lane.submit('c', 'dead gateway', 60_000, shared, [
      { id: 'c.0', content: '"x"' },
      { id: 'c.1', content: '"x"' },
    ]);
    await server.redis.del('farm:{lane-v1:shared}:g:dead gateway');
    await until('they are dropped', async () => (await server.redis.keys('farm:{lane*}:s:*')).length === 0);
    await server.redis.del('farm:{lane-v1:shared}:c:c');
    expect(gate.waiting).toBe(0);
  });
});
