// Whole commands, each test on a data folder of its own: nothing of it may be left when the test is over.

import { readFileSync } from 'node:fs';
import { describe, expect, it, type TestContext } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { fingerprint } from '../../src/shared/ledger/run-settings.ts';
import type { RunStatus } from '../../src/shared/ledger/run-status.ts';
import { announce } from '../../src/shared/presence.ts';
import { SHARED_REALM } from '../../src/shared/realm.ts';
import { EngineProxy } from '../support/engine-proxy.ts';
import { type Command, type Ended, TestFarm } from '../support/farm.ts';
import { filesWith } from '../support/files.ts';
import { killAll } from '../support/processes.ts';
import { startRedis } from '../support/redis-server.ts';
import { quickSpec, slowSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

function newFarm({ onTestFinished }: TestContext, env: Record<string, string> = {}): TestFarm {
  const farm = new TestFarm(env);
  onTestFinished(() => farm.close());
  return farm;
}

/** The command's output; throws what it said if its exit is another one. */
function expectExit(ended: Ended, code: number): string {
  if (ended.code !== code) throw new Error(`exit ${ended.code}, not ${code}:\n${ended.stderr}\n${ended.stdout}`);
  return ended.stdout;
}
const succeed = async (farm: TestFarm, ...args: string[]): Promise<string> => expectExit(await farm.run(...args), 0);

const recordsOf = (stdout: string): GroupRecord[] =>
  stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as GroupRecord);

async function statusOf(farm: TestFarm, run: string): Promise<RunStatus | null> {
  const ended = await farm.run('status', run, '--json');
  return ended.code === 0 ? (JSON.parse(ended.stdout) as RunStatus) : null;
}

/** An engine on which a farm's commands get so many boxes, each for one member, until more are admitted: a run stays at work. */
async function engineOf({ onTestFinished }: TestContext, boxes: number): Promise<EngineProxy> {
  const engine = await EngineProxy.start();
  onTestFinished(() => engine.close());
  engine.admit(boxes);
  return engine;
}

/** Waits until so many members of the run are accepted, while others are still to come. */
async function atWork(farm: TestFarm, run: string, accepted = 1): Promise<RunStatus> {
  const status = await until(
    'the run is at work',
    async () => {
      const now = await statusOf(farm, run);
      return now?.state === 'running' && now.members.accepted >= accepted && now;
    },
    { withinMs: 90_000, everyMs: 100 },
  );
  expect(status.members.accepted).toBeLessThan(status.members.planned);
  return status;
}

/** The run is done, every planned member is there once and is sound. */
async function expectWhole(farm: TestFarm, run: string, groups: number, size: number): Promise<GroupRecord[]> {
  const check = JSON.parse(await succeed(farm, 'verify-run', run, '--json')) as Record<string, unknown>;
  expect(check).toMatchObject({ ok: true, groups, members: groups * size, faults: [] });
  const records = recordsOf(await succeed(farm, 'results', run));
  expect(records.map((r) => r.group).sort((a, b) => a - b)).toEqual(Array.from({ length: groups }, (_, i) => i));
  for (const { members } of records)
    expect(members.map((m) => m.member)).toEqual(Array.from({ length: size }, (_, i) => i));
  return records;
}

const started = (command: Command) =>
  until('it has named its run', () => command.stdout.includes('\n'), { withinMs: 60_000 });

describe('farm run', () => {
  it('is refused with another AmberTrace key than the run was opened with, before anything starts', async (context) => {
    const server = await startRedis();
    context.onTestFinished(() => server.close());
    const at = { REDIS_URL: `unix://${server.place.options.path}`, AMBERTRACE_BASE_URL: 'http://127.0.0.1:9' };
    const farm = newFarm(context, { ...at, AMBERTRACE_API_KEY: 'at_first' });
    const other = newFarm(context, { ...at, AMBERTRACE_API_KEY: 'at_other' });
    const spec = farm.file('verified.json', {
      name: 'verified',
      group_size: 1,
      tasks: [{ id: 'q', env: 'text', config: {}, prompt: 'May this be?' }],
      policy: { kind: 'scripted', actions: ['yes'] },
      domain: { platform_id: 1, query_template: 'May this be? {facts}', parser: 'json_block' },
    });
    const key = fingerprint('at_first');
    const slots = { light: 1, verify: 1 };
    const shared = await announce(server.redis, { role: 'verify', realm: SHARED_REALM, worker: 'w-1', slots, key });
    const collector = await announce(server.redis, { role: 'collect', realm: SHARED_REALM, worker: 'w-2', slots: {} });
    await succeed(farm, 'run', spec, '--run-id', 'keyed', '--detach');
    // Who leaves it to workers that hold the first key needs not hold it.
    await succeed(other, 'run', spec, '--run-id', 'keyed', '--detach');
    await shared.stop();
    const before = await server.redis.hgetall('farm:{keyed}:run');
    for (const detach of [[], ['--detach']]) {
      const refused = await other.run('run', spec, '--run-id', 'keyed', ...detach);
      expectExit(refused, 2);
      expect(refused.stderr).toMatch(
        new RegExp(`opened with an AmberTrace key .*${key?.slice(0, 6)}, and the one here`),
      );
    }
    expect(await server.redis.hgetall('farm:{keyed}:run')).toEqual(before);
    await collector.stop();
    await other.gone();
  });

  it('brings a run to its end: the id first on stdout, results, sound shards, and nothing left', async (context) => {
    const farm = newFarm(context);
    const stdout = await succeed(farm, 'run', slowSpec(farm, { groups: 2, seconds: 0 }));
    const run = stdout.split('\n')[0] as string;
    expect(stdout).toBe(`${run}\n`);
    const records = await expectWhole(farm, run, 2, 4);
    for (const record of records)
      for (const member of record.members)
        expect(member).toMatchObject({
          status: 'completed',
          reward: 1,
          attempts: 1,
          certificate: { isolation: 'fresh' },
        });
    expect(await succeed(farm, 'replay', run)).toMatch(/reproduced OK \(8 episodes, 8 steps\)/);
    await farm.nothingLeft();
  });

  it('gives one JSON object with --json; the same id again does nothing again, and another spec is refused', async (context) => {
    const farm = newFarm(context);
    const spec = quickSpec(farm);
    const first = JSON.parse(await succeed(farm, 'run', spec, '--run-id', 'a', '--json')) as RunStatus;
    expect(first).toMatchObject({
      run: 'a',
      state: 'done',
      groups: { planned: 12, closed: 12 },
      members: { completed: 48 },
    });
    const results = await succeed(farm, 'results', 'a');
    const again = JSON.parse(await succeed(farm, 'run', spec, '--run-id', 'a', '--json')) as RunStatus;
    expect(again).toMatchObject({ run: 'a', state: 'done', members: { accepted: 48 } });
    expect(await succeed(farm, 'results', 'a')).toBe(results);
    const changed = await farm.run('run', quickSpec(farm, { seed: 8 }), '--run-id', 'a');
    expect(changed.code).toBe(2);
    expect(changed.stderr).toMatch(/seed/);
    expect(await succeed(farm, 'results', 'a')).toBe(results);
    await farm.nothingLeft();
  });

  it('says what is missing before anything starts: image (3), run id (2), file (2), key (2), workers (3)', async (context) => {
    const farm = newFarm(context);
    const tasks = [{ id: 'x', env: 'command', config: { files: {}, task: 't', expected_stdout: '', timeout: 1 } }];
    const policy = { kind: 'scripted', actions: [['true']] };
    const image = quickSpec(farm, { tasks, policy, sandbox: { image: 'rollout-farm/nobody-has-this' } });
    const missing = await farm.run('run', image);
    expect(missing).toMatchObject({ code: 3, stdout: '' });
    expect(missing.stderr).toMatch(/rollout-farm\/nobody-has-this/);
    const spec = quickSpec(farm);
    expect(await farm.run('run', spec, '--run-id', '../x')).toMatchObject({ code: 2, stdout: '' });
    expect(await farm.run('run', `${spec}.none`)).toMatchObject({ code: 2, stdout: '' });
    expect(await farm.run('run', spec, '--detach')).toMatchObject({ code: 3, stdout: '' });
    const text = quickSpec(farm, {
      tasks: [{ id: 'x', env: 'text', config: {}, prompt: 'p' }],
      policy: { kind: 'scripted', actions: ['{}'] },
      domain: { platform_id: 1 },
    });
    const keyless = await farm.run('run', text);
    expect(keyless).toMatchObject({ code: 2, stdout: '' });
    expect(keyless.stderr).toMatch(/AMBERTRACE_API_KEY/);
    expect(await succeed(farm, 'status', '--json')).toBe('[]\n');
    await farm.nothingLeft();
  });

  it('goes on after kill -9 of everything at work: nothing lost, nothing twice, and the boxes have ended by themselves', async (context) => {
    const engine = await engineOf(context, 12);
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const spec = slowSpec(farm, { groups: 8 });
    const killed = farm.start('run', spec, '--run-id', 'k');
    await atWork(farm, 'k', 8);
    const before = recordsOf((await farm.run('results', 'k')).stdout);
    await until('everything is killed', () => {
      killAll(farm.processes);
      return farm.processes.length === 0;
    });
    expect((await killed.ended).code).toBeNull();
    engine.admit();
    // one that was created and not yet started has nothing that could end it: the next command removes it
    await until('the boxes have ended', () => farm.running.length === 0, { withinMs: 90_000, everyMs: 250 });
    const resumed = JSON.parse(await succeed(farm, 'run', spec, '--run-id', 'k', '--json')) as RunStatus;
    expect(resumed).toMatchObject({ state: 'done', members: { completed: 32, no_result: 0 } });
    const records = await expectWhole(farm, 'k', 8, 4);
    expect(records.slice(0, before.length)).toEqual(before);
    for (const member of records.flatMap((r) => r.members)) expect(member).toMatchObject({ attempts: 1 });
    await farm.nothingLeft();
  });

  it('goes on by itself when Redis, its keeper and a worker are killed one after the other: nothing lost, nothing twice', async (context) => {
    const engine = await engineOf(context, 0);
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const command = farm.start('run', slowSpec(farm, { groups: 12 }), '--run-id', 'r', '--json');
    for (const [accepted, victim] of [
      [4, 'redis-server'],
      [16, 'keeper/main.js'],
      [28, '"rollout"'],
    ] as const) {
      // Boxes may be lost with a worker, or made and never used.
      engine.admit(accepted + 8);
      await atWork(farm, 'r', accepted);
      const victims = await until('its victim is there', () => {
        const found = farm.processes.filter((p) => p.command.includes(victim));
        return found.length > 0 && found;
      });
      killAll(victims);
    }
    engine.admit();
    expect(JSON.parse(expectExit(await command.ended, 0))).toMatchObject({ state: 'done', members: { completed: 48 } });
    const records = await expectWhole(farm, 'r', 12, 4);
    for (const member of records.flatMap((r) => r.members)) expect(member).toMatchObject({ attempts: 1 });
    await farm.nothingLeft();
  });

  it('drains at a Ctrl-C that reaches its whole process group: exit 130, nothing left, and it goes on later', async (context) => {
    const engine = await engineOf(context, 6);
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const spec = slowSpec(farm, { groups: 8 });
    const command = farm.start('run', spec, '--run-id', 'c');
    await atWork(farm, 'c', 2);
    command.signalGroup('SIGINT');
    await until('it drains', () => command.stderr.includes('draining'));
    engine.admit();
    expectExit(await command.ended, 130);
    expect(farm.containers).toEqual([]);
    const status = (await statusOf(farm, 'c')) as RunStatus;
    // Those at work were finished, not given back.
    expect(status.members).toMatchObject({ in_flight: 0, no_result: 0 });
    expect(status.members.accepted).toBeLessThan(32);
    await farm.nothingLeft();
    expect(JSON.parse(await succeed(farm, 'run', spec, '--run-id', 'c', '--json'))).toMatchObject({ state: 'done' });
    await expectWhole(farm, 'c', 8, 4);
  });

  it.each([
    ['Ctrl-C', 'SIGINT', 130],
    ['SIGTERM', 'SIGTERM', 143],
  ] as const)('stops within seconds at a second %s, though its members would take minutes', async (_, signal, exit) => {
    const farm = new TestFarm();
    try {
      const command = farm.start('run', slowSpec(farm, { groups: 2, seconds: 150 }), '--run-id', 's');
      await until('a box is open', () => farm.containers.length > 0, { withinMs: 60_000, everyMs: 100 });
      await until(
        'it is at work',
        async () => ((await statusOf(farm, 's'))?.waiting_for ?? []).some((w) => w.phase === 'playing'),
        {
          withinMs: 60_000,
        },
      );
      command.signalGroup(signal);
      await until('it drains', () => command.stderr.includes('draining'));
      const began = performance.now();
      command.signalGroup(signal);
      expectExit(await command.ended, exit);
      // A drain that goes on has half a minute.
      expect(performance.now() - began).toBeLessThan(20_000);
      await farm.nothingLeft();
    } finally {
      await farm.close();
    }
  });

  it('is seen, followed and cancelled from other shells while it is at work', async (context) => {
    const engine = await engineOf(context, 10);
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const command = farm.start('run', slowSpec(farm, { groups: 40 }), '--run-id', 'x');
    await started(command);
    const follower = farm.start('results', 'x', '--follow');
    const status = await atWork(farm, 'x', 6);
    expect(status).toMatchObject({ groups: { planned: 40 }, members: { planned: 160 } });
    expect(status.members.in_flight).toBeGreaterThan(0);
    expect(status.waiting_for[0]).toMatchObject({
      member: expect.stringMatching(/^\d+-\d+$/),
      phase: expect.any(String),
    });
    expect(status.waiting_for[0]?.deadline_s).toBeGreaterThan(0);
    const some = await until('results', async () => {
      const records = recordsOf(await succeed(farm, 'results', 'x'));
      return records.length > 0 && records;
    });
    expect(await succeed(farm, 'runs')).toMatch(/^x {2}running/m);
    await succeed(farm, 'cancel', 'x');
    expectExit(await command.ended, 0);
    const followed = recordsOf(expectExit(await follower.ended, 0));
    const records = await expectWhole(farm, 'x', 40, 4);
    expect(followed).toEqual(records);
    expect(records.slice(0, some.length)).toEqual(some);
    const last = recordsOf(await succeed(farm, 'results', 'x', '--after', some.at(-1)?.cursor as string));
    expect(last).toEqual(records.slice(some.length));
    const causes = records.flatMap((r) => r.members).flatMap((m) => (m.status === 'no_result' ? [m.cause] : []));
    expect(new Set(causes)).toEqual(new Set(['cancelled']));
    expect(await statusOf(farm, 'x')).toMatchObject({ state: 'cancelled', groups: { closed: 40 } });
    await farm.nothingLeft();
  });

  it('keeps to itself beside another one on the same folder, also with other workers and another verifier', async (context) => {
    const farm = newFarm(context);
    const simulator = farm.start('simulate');
    const url = await until('the simulator is ready', () => simulator.stdout.split('\n')[0]);
    const key = 'at_canary_77f0a1';
    Object.assign(farm.env, { AMBERTRACE_BASE_URL: url, AMBERTRACE_API_KEY: key });
    const text = farm.file('text.json', {
      name: 'text',
      group_size: 4,
      tasks: Array.from({ length: 6 }, (_, i) => ({ id: `x${i}`, env: 'text', config: {}, prompt: 'p' })),
      policy: { kind: 'scripted', actions: ['<decision>{"classification": "deny", "facts": {}}</decision>'] },
      domain: { platform_id: 1, parser: 'json_block' },
    });
    const one = farm.start('run', slowSpec(farm, { groups: 3 }), '--run-id', 'one', '--json');
    const two = farm.start('run', text, '--run-id', 'two', '--json');
    for (const [command, run, members] of [
      [one, 'one', 12],
      [two, 'two', 24],
    ] as const)
      expect(JSON.parse(expectExit(await command.ended, 0))).toMatchObject({
        run,
        state: 'done',
        members: { completed: members },
      });
    await expectWhole(farm, 'one', 3, 4);
    await expectWhole(farm, 'two', 6, 4);
    simulator.process.kill('SIGTERM');
    await simulator.ended;
    await farm.nothingLeft();
    // Nobody wrote the key anywhere: not the logs of any of these processes, not Redis, not the store.
    for (const command of [one, two, simulator]) expect(command.stdout + command.stderr).not.toContain(key);
    expect(filesWith(farm.data, key)).toEqual([]);
  });
});

describe('farm rm', () => {
  it('deletes a run and what only it claims, and leaves another one whole', async (context) => {
    const farm = newFarm(context);
    await succeed(farm, 'run', quickSpec(farm), '--run-id', 'a');
    await succeed(farm, 'run', quickSpec(farm, { seed: 9 }), '--run-id', 'b');
    await succeed(farm, 'rm', 'a');
    expect((await farm.run('status', 'a')).code).toBe(2);
    expect((await farm.run('results', 'a')).code).toBe(2);
    expect((await farm.run('rm', 'a')).code).toBe(2);
    await expectWhole(farm, 'b', 12, 4);
    await succeed(farm, 'rm', 'b');
    expect(await succeed(farm, 'runs', '--json')).toBe('[]\n');
    expect(filesWith(`${farm.data}/store`, 'g0')).toEqual([]);
    await farm.nothingLeft();
  });

  it('refuses a run that is at work', async (context) => {
    const engine = await engineOf(context, 4);
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const command = farm.start('run', slowSpec(farm, { groups: 20 }), '--run-id', 'a');
    await atWork(farm, 'a');
    const refused = await farm.run('rm', 'a');
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(/cancel/);
    await succeed(farm, 'cancel', 'a');
    expectExit(await command.ended, 0);
    await farm.nothingLeft();
  });
});

describe('farm up', () => {
  it('does what run --detach submits, and goes on with its workers’ help when one more is started and one is killed', async (context) => {
    const [engine, another] = [await engineOf(context, 10), await engineOf(context, 4)];
    const farm = newFarm(context, { DOCKER_HOST: engine.address });
    const up = farm.start('up');
    await until(
      'its workers are there',
      async () => (await farm.run('run', quickSpec(farm), '--run-id', 'probe', '--detach')).code === 0,
      {
        withinMs: 60_000,
        everyMs: 250,
      },
    );
    const spec = slowSpec(farm, { groups: 10 });
    expect(await succeed(farm, 'run', spec, '--run-id', 'd', '--detach')).toBe('d\n');
    farm.env.DOCKER_HOST = another.address;
    const worker = farm.start('worker', 'rollout', '--concurrency', '2');
    await until('it has played a member', () => worker.stderr.includes('"msg":"attempt"'), { withinMs: 90_000 });
    await atWork(farm, 'd', 4);
    killAll(farm.processes.filter((p) => p.command.includes('role-main.js') && p.command.includes('"rollout"')));
    for (const one of [engine, another]) one.admit();
    await until('it is done', async () => (await statusOf(farm, 'd'))?.state === 'done', {
      withinMs: 120_000,
      everyMs: 250,
    });
    const records = await expectWhole(farm, 'd', 10, 4);
    for (const member of records.flatMap((r) => r.members))
      expect(member).toMatchObject({ status: 'completed', attempts: 1 });
    await expectWhole(farm, 'probe', 12, 4);
    for (const command of [worker, up]) command.signalGroup('SIGTERM');
    expect([130, 143]).toContain((await worker.ended).code);
    expect([130, 143]).toContain((await up.ended).code);
    await farm.nothingLeft();
  });
});

describe('farm demo', () => {
  it('runs the main job from end to end, shows it, names what to try next, and what it names works', async (context) => {
    const farm = newFarm(context);
    const stdout = await succeed(farm, 'demo');
    const run = /run (run-[0-9a-f]+): (\d+) groups, (\d+) members/.exec(stdout);
    expect(run).not.toBeNull();
    const [, id = '', groups, members] = run as RegExpExecArray;
    expect(Number(groups)).toBeGreaterThanOrEqual(16);
    expect(Number(members)).toBe(8 * Number(groups));
    for (const next of ['replay', 'results', 'verify-run']) expect(stdout).toContain(`./farm ${next} ${id}`);
    const records = await expectWhole(farm, id, Number(groups), 8);
    expect(new Set(records.map((r) => r.degenerate))).toEqual(new Set([true, false]));
    const environments = records.flatMap((r) =>
      r.members.flatMap((m) => (m.status === 'completed' ? [m.certificate.env] : [])),
    );
    expect(new Set(environments)).toEqual(new Set(['code-task', 'sql-task', 'guess', 'text']));
    expect(await succeed(farm, 'replay', id)).toMatch(/reproduced OK/);
    const manifest = JSON.parse(readFileSync(`${farm.data}/store/runs/${id}/manifest.json`, 'utf8')) as {
      state: string;
    };
    expect(manifest.state).toBe('done');
    await farm.nothingLeft();
  });

  it('leaves nothing to workers that are there, though they hold its key: they do not reach its verifier', async (context) => {
    const server = await startRedis();
    context.onTestFinished(() => server.close());
    const farm = newFarm(context, { REDIS_URL: `unix://${server.place.options.path}` });
    // Workers that never play a member: were it theirs, it would not end.
    const seat = { realm: SHARED_REALM, key: fingerprint('at_demo_simulator') };
    for (const [role, slots] of [
      ['rollout', { rollout: 4, light: 16 }],
      ['verify', { verify: 64 }],
      ['collect', {}],
    ] as const) {
      const { stop } = await announce(server.redis, { ...seat, role, worker: `${role}-elsewhere`, slots });
      context.onTestFinished(stop);
    }
    expect(await succeed(farm, 'demo')).toMatch(/run run-[0-9a-f]+: \d+ groups/);
  });
});
