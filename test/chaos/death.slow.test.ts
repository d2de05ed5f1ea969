import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import type { RunStatus } from '../../src/shared/ledger/run-status.ts';
import { type Command, TestFarm } from '../support/farm.ts';
import { startRedis } from '../support/redis-server.ts';
import { slowSpec } from '../support/run-specs.ts';
import { TIMED } from '../support/timed.ts';
import { until } from '../support/until.ts';

/** Six seconds were seen; that a lease outlives them stands beside the ledger. What the machine adds here must fit in too. */
const STALL_MS = 4_500;
const PATIENCE = { withinMs: 120_000 };

function testFarm({ onTestFinished }: TestContext): TestFarm {
  const farm = new TestFarm();
  onTestFinished(() => farm.close());
  return farm;
}

function workerPid(farm: TestFarm): number | undefined {
  return farm.processes.find((p) => /role-main\.js \{"role":"rollout"/.test(p.command))?.pid;
}

async function statusOf(farm: TestFarm, run: string): Promise<RunStatus | null> {
  const { code, stdout } = await farm.run('status', run, '--json');
  return code === 0 ? (JSON.parse(stdout) as RunStatus) : null;
}

/** Waits until `count` members of it play. */
async function playing(farm: TestFarm, run: string, count: number): Promise<void> {
  const plays = async () =>
    ((await statusOf(farm, run))?.waiting_for ?? []).filter((w) => w.phase === 'playing').length >= count;
  await until(`${count} members play`, plays, PATIENCE);
}

const attemptsOf = ({ stderr }: Command) => stderr.split('\n').filter((line) => line.includes('"msg":"attempt"'));

describe('a worker', () => {
  it('that stalls for seconds loses none of its members: each is played once', TIMED, async (context) => {
    const farm = testFarm(context);
    const command = farm.start(
      'run',
      slowSpec(farm, { groups: 1, size: 2, seconds: 15 }),
      '--run-id',
      'stall',
      '--workers',
      '2',
    );
    await playing(farm, 'stall', 2);
    const pid = await until('the worker is found', () => workerPid(farm));
    process.kill(pid, 'SIGSTOP');
    await wait(STALL_MS);
    process.kill(pid, 'SIGCONT');
    const { code, stderr } = await command.ended;
    expect(code, stderr).toBe(0);
    const attempts = attemptsOf(command);
    expect(attempts).toHaveLength(2);
    for (const line of attempts) expect(JSON.parse(line)).toMatchObject({ attempt: 1, ledger: 'accepted' });
    await farm.nothingLeft(PATIENCE);
  });

  it('that dies under the same member again and again sets it aside as poison, with the signature of its deaths', async (context) => {
    const farm = testFarm(context);
    const spec = slowSpec(farm, { groups: 1, size: 1, seconds: 60 });
    const command = farm.start('run', spec, '--run-id', 'poison', '--workers', '2');
    let killed: number | undefined;
    for (let death = 0; death < 3; death++) {
      const pid = await until(
        'another worker is there',
        () => [workerPid(farm)].find((found) => found !== killed),
        PATIENCE,
      );
      await playing(farm, 'poison', 1);
      process.kill(pid, 'SIGSEGV');
      killed = pid;
    }
    const { code, stderr } = await command.ended;
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/1 without result \(1 poison\)/);
    const [record] = (await farm.run('results', 'poison')).stdout.split('\n');
    expect(JSON.parse(record ?? '')).toMatchObject({
      members: [{ status: 'no_result', cause: 'poison', detail: 'rollout died: SIGSEGV' }],
    });
    expect((await farm.run('verify-run', 'poison')).code).toBe(0);
    await farm.nothingLeft(PATIENCE);
  });

  it('that a member kills each time sets that one aside, and none of its neighbours: they complete', async (context) => {
    const farm = testFarm(context);
    const culprit = '0-2';
    // It plays until it is killed; its neighbours end by themselves.
    const play = (seconds: number) => ({
      task_id: 'c0',
      action: ['python3', '-c', `import time; time.sleep(${seconds}); print("hello")`],
    });
    const lines = [15, 15, 100, 15].map((seconds) => `${JSON.stringify(play(seconds))}\n`);
    farm.file('plays.jsonl', lines.join(''));
    const spec = slowSpec(farm, {
      groups: 1,
      size: 4,
      seconds: 100,
      policy: { kind: 'completions', path: 'plays.jsonl' },
    });
    const command = farm.start('run', spec, '--run-id', 'among', '--workers', '4');
    let over = false;
    const ended = command.ended.finally(() => {
      over = true;
    });
    let killed: number | undefined;
    let deaths = 0;
    const plays = async (): Promise<boolean> =>
      ((await statusOf(farm, 'among'))?.waiting_for ?? []).some((w) => w.member === culprit && w.phase === 'playing');
    await playing(farm, 'among', 4);
    while (!over) {
      const pid = await until('another worker is there, or the run is over', () => over || workerPid(farm), PATIENCE);
      if (pid === true || over) break;
      if (pid === killed || !(await plays())) continue;
      process.kill(pid as number, 'SIGSEGV');
      killed = pid as number;
      deaths++;
    }
    const { code, stderr } = await ended;
    expect(code, stderr).toBe(0);
    // Once among its neighbours, three times by itself.
    expect(deaths).toBe(4);
    const [record] = (await farm.run('results', 'among')).stdout.split('\n');
    const { members } = JSON.parse(record ?? '') as { members: { status: string; cause?: string }[] };
    expect(members.map((m) => m.cause ?? m.status)).toEqual(['completed', 'completed', 'poison', 'completed']);
    expect((await farm.run('verify-run', 'among')).code).toBe(0);
    await farm.nothingLeft(PATIENCE);
  });

  it('that was started by itself is no less supervised: its poison is buried and shown, and it goes on', async (context) => {
    const server = await startRedis();
    context.onTestFinished(() => server.close());
    const farm = new TestFarm({ REDIS_URL: `unix://${server.place.options.path}` });
    context.onTestFinished(() => farm.close());
    const worker = farm.start('worker', 'rollout', '--concurrency', '2');
    const collect = farm.start('worker', 'collect');
    for (const command of [worker, collect])
      await until('it is ready', () => command.stderr.includes('"ready"'), PATIENCE);
    const spec = slowSpec(farm, { groups: 1, size: 1, seconds: 60 });
    expect(await farm.run('run', spec, '--run-id', 'alone', '--detach')).toMatchObject({ code: 0 });
    let killed: number | undefined;
    for (let death = 0; death < 3; death++) {
      const pid = await until('another is there', () => [workerPid(farm)].find((found) => found !== killed), PATIENCE);
      await playing(farm, 'alone', 1);
      process.kill(pid, 'SIGSEGV');
      killed = pid;
    }
    const done = await until(
      'the run is done',
      async () => {
        const status = await statusOf(farm, 'alone');
        return status?.state === 'done' && status;
      },
      PATIENCE,
    );
    expect(done.members).toMatchObject({ no_result: 1, by_cause: { poison: 1 } });
    expect(JSON.parse((await farm.run('results', 'alone')).stdout)).toMatchObject({
      members: [{ cause: 'poison', detail: 'rollout died: SIGSEGV' }],
    });
    expect(worker.stderr).toMatch(/a worker died; starting another/);
    // It takes others' members as before, and goes when it is told to.
    const next = slowSpec(farm, { groups: 1, size: 2, seconds: 0.2 });
    expect(await farm.run('run', next, '--run-id', 'next', '--detach')).toMatchObject({ code: 0 });
    await until('the next run is done', async () => (await statusOf(farm, 'next'))?.state === 'done', PATIENCE);
    for (const command of [worker, collect]) {
      command.process.kill('SIGTERM');
      expect([143, 130]).toContain((await command.ended).code);
    }
    await farm.gone(PATIENCE);
  });

  it('whose own process is killed outright takes its member process with it, and both give everything back', async (context) => {
    const server = await startRedis();
    context.onTestFinished(() => server.close());
    const farm = new TestFarm({ REDIS_URL: `unix://${server.place.options.path}` });
    context.onTestFinished(() => farm.close());
    const first = farm.start('worker', 'rollout', '--concurrency', '2');
    const collect = farm.start('worker', 'collect');
    for (const command of [first, collect])
      await until('it is ready', () => command.stderr.includes('"ready"'), PATIENCE);
    const spec = slowSpec(farm, { groups: 1, size: 2, seconds: 15 });
    expect(await farm.run('run', spec, '--run-id', 'orphan', '--detach')).toMatchObject({ code: 0 });
    await playing(farm, 'orphan', 2);
    const child = workerPid(farm) as number;
    first.process.kill('SIGKILL');
    await until('its member process has gone', () => !farm.processes.some((p) => p.pid === child), PATIENCE);
    const second = farm.start('worker', 'rollout', '--concurrency', '2');
    await until('the run is done', async () => (await statusOf(farm, 'orphan'))?.state === 'done', PATIENCE);
    expect((await statusOf(farm, 'orphan'))?.members).toMatchObject({ completed: 2, no_result: 0 });
    for (const command of [second, collect]) command.process.kill('SIGTERM');
    await farm.gone(PATIENCE);
  });
});
