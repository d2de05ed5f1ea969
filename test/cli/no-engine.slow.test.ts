// A machine without an engine, as a gateway's container is: its runs are played by rollout workers elsewhere on its Redis,
// with their images. The engine is real and the workers' alone; what the other has for one is a socket that is not there.

import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runKey } from '../../src/shared/ledger/script.ts';
import { findingOf } from '../support/doctor.ts';
import { type Command, type Ended, TestFarm } from '../support/farm.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { slowSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

let server: TestRedis;
let url: string;
beforeAll(async () => {
  server = await startRedis();
  url = `unix://${server.place.options.path}`;
});
afterAll(() => server.close());

/** Has the engine. */
let there: TestFarm;
/** Has none. */
let here: TestFarm;
let spec: string;
beforeEach(() => {
  there = new TestFarm({ REDIS_URL: url });
  const FARM_STORE = `${there.data}/store`;
  there.env.FARM_STORE = FARM_STORE;
  here = new TestFarm({ REDIS_URL: url, FARM_STORE, DOCKER_HOST: `unix://${there.data}/no-engine.sock` });
  spec = slowSpec(here, { groups: 2, seconds: 0 });
});
afterEach(async () => {
  await here.close();
  await there.close();
  await server.redis.flushall();
});

async function worker(farm: TestFarm, role: string, ...more: string[]): Promise<Command> {
  const command = farm.start('worker', role, ...more);
  await until(`the ${role} worker is ready`, () => command.stderr.includes('"ready"'), { withinMs: 120_000 });
  return command;
}

const sandbox = () => findingOf(here, 'sandbox');

const own = (): string[] =>
  here.processes.flatMap((p) => (/role-main\.js.*"role":"(\w+)"/.exec(p.command) ?? []).slice(1));

const imageId = (name: string): string =>
  execFileSync('docker', ['image', 'inspect', '--format', '{{.Id}}', name], { encoding: 'utf8' }).trim();

function expectBothWaysOut(ended: Ended): void {
  expect(ended, ended.stderr).toMatchObject({ code: 3, stdout: '' });
  expect(ended.stderr).toMatch(/the Docker engine does not answer/);
  expect(ended.stderr).toMatch(/start Docker.*; or start \.\/farm worker rollout on a machine that has an engine/);
}

describe('a command on a machine without an engine', () => {
  it('has its run played by a rollout worker elsewhere, with that one’s image, and brings only a collector', async () => {
    await worker(there, 'rollout');
    const running = here.start('run', slowSpec(here, { groups: 1, seconds: 12 }), '--run-id', 'elsewhere', '--json');
    const brought = await until('it has brought workers', () => own().length > 0 && own(), { withinMs: 120_000 });
    const status = async (): Promise<string> => (await here.run('status', 'elsewhere', '--json')).stdout;
    await until('it is played', async () => (await status()).includes('"playing"'), { withinMs: 120_000 });
    expect([...brought, ...own()]).toEqual(['collect', 'collect']);
    const ended = await running.ended;
    expect(ended, ended.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(ended.stdout)).toMatchObject({ state: 'done', members: { completed: 4, no_result: 0 } });
    const fixed = JSON.parse((await server.redis.hget(`${runKey('elsewhere')}:run`, 'versions')) ?? 'null');
    expect(fixed).toMatchObject({ image: imageId('rollout-farm/python') });
    expect(await here.run('verify-run', 'elsewhere')).toMatchObject({ code: 0 });
    await here.gone();
  });

  it('brings nothing where all roles are there, and leaves a run to them', async () => {
    await worker(there, 'rollout');
    const refused = await here.run('run', spec, '--detach');
    expect(refused).toMatchObject({ code: 3, stdout: '' });
    expect(refused.stderr).toMatch(/there is none that collects/);
    await worker(here, 'collect');
    expect(await here.run('run', spec, '--run-id', 'left', '--detach')).toMatchObject({ code: 0 });
    const { stdout } = await here.run('results', 'left', '--follow');
    expect(stdout.trim().split('\n')).toHaveLength(2);
    const followed = await here.run('run', spec, '--run-id', 'followed', '--json');
    expect(JSON.parse(followed.stdout)).toMatchObject({ state: 'done', members: { completed: 8 } });
  });

  it('says what is missing, and both ways out: with no worker, and with workers that have no slots for boxes', async () => {
    expectBothWaysOut(await here.run('run', spec));
    const items = here.file('items.jsonl', '{"prompt": "p", "completion": "echo"}\n');
    const config = JSON.stringify({ files: {}, task: 't', expected_stdout: '', timeout: 1 });
    expectBothWaysOut(await here.run('score', '--env', 'command', '--env-config', config, '--input', items));
    await worker(there, 'rollout', '--concurrency', 'rollout=0,light=4');
    await worker(here, 'collect');
    expectBothWaysOut(await here.run('run', spec));
    expect((await here.run('run', spec, '--detach')).stderr).toMatch(/there is none with rollout slots/);
    expect(await server.redis.keys('*run-*')).toEqual([]);
  });

  it('is told by doctor where an engine is needed, and whether live workers have one', async () => {
    const alone = await sandbox();
    expect(alone).toMatchObject({ code: 3, finding: { ok: false } });
    expect(alone.finding.found).toMatch(/does not answer.*no live worker is known that has one/);
    expect(alone.finding.hint).toMatch(/needed only where rollout workers run/);
    const without = await worker(here, 'rollout');
    expect((await sandbox()).finding.ok).toBe(false);
    without.signalGroup('SIGTERM');
    await without.ended;
    await worker(there, 'rollout');
    const told = await until('its engine is known', async () => {
      const now = await sandbox();
      return now.finding.ok && now;
    });
    expect(told.code).toBe(0);
    expect(told.finding.found).toMatch(/none needed here: rollout workers on this Redis: 1, their engines: 1/);
    expect(told.finding.hint).toMatch(/here the Docker engine does not answer.*needed only where rollout workers run/);
  });
});
