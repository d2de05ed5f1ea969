import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { fingerprint } from '../../src/shared/ledger/run-settings.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import { present } from '../../src/shared/presence.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { startSimulator } from '../../src/simulator/server.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import type { Role } from '../../src/workers/role.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { startVerifyWorker } from '../../src/workers/verify/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { filesWith } from '../support/files.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const KEY = 'at_canary_5b3e9d1c';
const DOMAIN = { platform_id: 1, query_template: 'May this be permitted? {facts}', parser: 'json_block' };

async function parts({ onTestFinished }: TestContext, misbehave: object = {}): Promise<FarmParts> {
  const simulator = await startSimulator({ misbehave: JSON.stringify(misbehave) });
  const farm = await FarmParts.start({ AMBERTRACE_API_KEY: KEY, AMBERTRACE_BASE_URL: simulator.baseUrl });
  onTestFinished(async () => {
    await farm.close();
    await simulator.close();
  });
  return farm;
}

async function rollout(farm: FarmParts, run: string, sandbox = new GatedSandbox(), concurrency = 4): Promise<Role> {
  const seat = farm.seat('rollout', run, concurrency);
  const role = await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker]));
  return ending(farm, role);
}
const verify = async (farm: FarmParts, run: string): Promise<Role> =>
  ending(farm, await startVerifyWorker(farm.seat('verify', run)));
const collect = async (farm: FarmParts, run: string): Promise<Role> =>
  ending(farm, await startCollectWorker(farm.seat('collect', run), run));

/** Stopped at the end of the test, unless it was ended before. */
function ending(farm: FarmParts, role: Role): Role {
  let over = false;
  const once = (end: () => Promise<void>) => async (): Promise<void> => {
    over = true;
    await end();
  };
  farm.onClose(() => (over ? undefined : role.stop()));
  return { drain: once(role.drain), stop: once(role.stop) };
}

function decision(classification: string): string {
  const facts = { age: 34, annual_income: 9500, resident: true, active_grant: false };
  return `<decision>${JSON.stringify({ classification, facts })}</decision>`;
}
const grant = (id: string) => ({
  id,
  env: 'text',
  config: {},
  prompt: 'A baker of 34 applies.',
  metadata: { gold: 'permit' },
});
const say = (id: string, verify = false) => ({
  id,
  env: 'command',
  config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 },
  ...(verify ? { verify } : {}),
});

const SAY = {
  group_size: 3,
  tasks: [say('s0'), say('s1')],
  policy: { kind: 'scripted', actions: [['echo', 'hello']] },
};

describe.concurrent('the roles together', () => {
  it('bring a mixed run to its end, with sound shards and one wide line for each attempt', async (context) => {
    const farm = await parts(context);
    const completions = [
      ...['permit', 'deny'].map((c) => ({ task_id: 'grant', completion: decision(c) })),
      { task_id: 'g0', actions: [4, 2, 6, 8] },
      { task_id: 'say', action: ['echo', 'hello'] },
      { task_id: 'say', action: ['echo', 'good-bye'] },
    ];
    writeFileSync(path.join(farm.folder, 'c.jsonl'), completions.map((c) => `${JSON.stringify(c)}\n`).join(''));
    const run = await farm.drive({
      group_size: 4,
      tasks: [grant('grant'), say('say'), ...guessTasks(1)],
      policy: { kind: 'completions', path: 'c.jsonl', cycle: true },
      domain: DOMAIN,
    });
    const sandbox = new GatedSandbox();
    sandbox.release();
    const roles = [await rollout(farm, run.run, sandbox), await verify(farm, run.run), await collect(farm, run.run)];
    expect(await run.end).toEqual({ state: 'done' });
    for (const role of roles) await role.drain();
    expect(await present(farm.server.redis)).toEqual([]);
    expect(await run.status()).toMatchObject({
      state: 'done',
      groups: { planned: 3, closed: 3 },
      members: { planned: 12, accepted: 12, completed: 12, no_result: 0, in_flight: 0 },
    });
    expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, groups: 3, members: 12, faults: [] });

    const wide = (msg: string) => farm.lines.filter((line) => line.msg === msg);
    expect(wide('attempt')).toHaveLength(12);
    for (const line of wide('attempt')) {
      expect(line).toMatchObject({ run: run.run, attempt: 1, status: 'completed', steps: expect.any(Number) });
      for (const figure of ['group', 'member', 'wall_ms', 'seconds', 'reward'])
        expect(line[figure]).toEqual(expect.any(Number));
      expect(['grant', 'say', 'g0']).toContain(line.task);
    }
    const rewards = (task: string) => wide('attempt').flatMap((line) => (line.task === task ? [line.reward] : []));
    expect(rewards('say').sort()).toEqual([-0.1, -0.1, 1, 1]);
    expect(wide('verified').map((line) => [line.task, line.status, line.ledger])).toEqual(
      Array.from({ length: 4 }, () => ['grant', 'completed', 'accepted']),
    );

    expect(JSON.stringify(farm.lines)).not.toContain(KEY);
    // The store, and what Redis has written of ledger and queue.
    expect(filesWith(farm.folder, KEY)).toEqual([]);
    expect(filesWith(farm.server.folder, KEY)).toEqual([]);
    expect(filesWith(farm.server.folder, run.run).length).toBeGreaterThan(0);
  });

  it('go on when one collector is told to stop in the middle: another one writes the rest', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive({
      group_size: 2,
      tasks: guessTasks(70),
      policy: { kind: 'scripted', actions: [4, 2] },
    });
    const worker = await rollout(farm, run.run);
    const first = await collect(farm, run.run);
    await until('a shard is committed', async () => Number(await run.ledger.field('shards')) > 0);
    await first.stop();
    const second = await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    await second.drain();
    await worker.drain();
    expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, groups: 70, members: 140, faults: [] });
  });
});

describe.concurrent('a rollout worker', () => {
  it('that is told to stop gives its members back at once and at no cost', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive(SAY);
    const shut = new GatedSandbox();
    const first = await rollout(farm, run.run, shut);
    await until('four members are at work', () => shut.waiting === 4);
    const began = performance.now();
    await first.stop();
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(shut.waiting).toBe(0);
    expect((await run.status()).members).toMatchObject({ accepted: 0, in_flight: 4 });
    const open = new GatedSandbox();
    open.release();
    await rollout(farm, run.run, open);
    await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    const attempts = farm.lines.filter((line) => line.msg === 'attempt' && line.status === 'completed');
    expect(attempts.map((line) => line.attempt)).toEqual(Array(6).fill(1));
  });

  it('that drains finishes the members at work and begins no others', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive(SAY);
    const sandbox = new GatedSandbox();
    const role = await rollout(farm, run.run, sandbox, 2);
    await until('two members are at work', () => sandbox.waiting === 2);
    let drained = false;
    const draining = role.drain().then(() => {
      drained = true;
    });
    await until('a heartbeat of the members that are still at work', async () => {
      const { waiting_for } = await run.status();
      return waiting_for.filter((w) => w.phase === 'waiting for a box').length === 2;
    });
    expect(drained).toBe(false);
    sandbox.release();
    await draining;
    expect((await run.status()).members).toMatchObject({ accepted: 2, completed: 2, in_flight: 0 });
    expect(await present(farm.server.redis)).toEqual([]);
  });

  it('whose engine fails pauses the run and spends no attempt; it goes on when the engine is there again', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive(SAY);
    const sandbox = new GatedSandbox();
    sandbox.state = 'down';
    await rollout(farm, run.run, sandbox);
    await collect(farm, run.run);
    const status = await until('the run is paused, and says why', async () => {
      const now = await run.status();
      // A disk that is slow may have paused it before.
      return now.state === 'paused' && /engine does not answer/.test(now.reason ?? '') && now;
    });
    expect(status.members).toMatchObject({ accepted: 0, no_result: 0 });
    sandbox.release();
    expect(await run.end).toEqual({ state: 'done' });
    const members = (await verifyRun(farm.store, run.run)) as { completed: number };
    expect(members.completed).toBe(6);
    const completed = farm.lines.filter((line) => line.msg === 'attempt' && line.status === 'completed');
    expect(completed.map((line) => line.attempt)).toEqual(Array(6).fill(1));
  });

  it('whose boxes fail while the engine is well spends attempts, and the member has no result with the cause', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive({ ...SAY, group_size: 1, tasks: [say('s0')] });
    const sandbox = new GatedSandbox();
    sandbox.state = 'down';
    sandbox.answers = async () => true;
    await rollout(farm, run.run, sandbox);
    await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    expect((await run.status()).members).toMatchObject({ no_result: 1, by_cause: { sandbox_start: 1 } });
    expect(farm.lines.filter((line) => line.msg === 'attempt').map((line) => line.attempt)).toEqual([1, 2, 3]);
  });

  it('has an outcome accepted when the episode is over, though the engine hangs and no box closes', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive(SAY);
    const sandbox = new GatedSandbox();
    sandbox.release();
    const open = sandbox.open.bind(sandbox);
    const closes: (() => void)[] = [];
    sandbox.open = async (limits, labels, signal) => {
      const box = await open(limits, labels, signal);
      const close = box.close.bind(box);
      box.close = () => new Promise<void>((resolve) => closes.push(resolve)).then(close);
      return box;
    };
    // A slot for each: none is held by a box.
    await rollout(farm, run.run, sandbox, 6);
    await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    expect((await run.status()).members).toMatchObject({ completed: 6, in_flight: 0 });
    expect(closes).toHaveLength(6);
    for (const go of closes) go();
  });

  it('leaves members of a run alone whose key it does not hold', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive({
      group_size: 1,
      tasks: [grant('x')],
      policy: { kind: 'scripted', actions: [decision('permit')] },
      domain: DOMAIN,
    });
    const seat = farm.seat('rollout', run.run);
    seat.config = { ...seat.config, ambertraceApiKey: 'at_another_key' };
    ending(farm, await startRolloutWorker(seat, new GatedSandbox(), async () => new Set()));
    await until('it says why', () => farm.lines.some((line) => line.msg === 'members left alone'));
    expect((await run.status()).members).toMatchObject({ accepted: 0, in_flight: 0 });
    expect(await farm.server.redis.hget(`${runKey(run.run)}:g:0`, '0.n')).toBeNull();
    // Whoever looks for workers knows whose it is before.
    const [seen] = await present(farm.server.redis);
    expect(seen).toMatchObject({ worker: seat.worker, key: fingerprint('at_another_key') });
    expect(seen?.key).not.toBe(run.settings.keyFingerprint);
  });
});

describe.concurrent('a verify worker', () => {
  const TEXT = {
    group_size: 2,
    tasks: [grant('x')],
    policy: { kind: 'scripted', actions: [decision('permit')] },
    domain: DOMAIN,
  };

  it.each(['unauthorized', 'forbidden'])(
    'stops the run when the platform refuses the key (%s): exit 2',
    async (kind) => {
      const simulator = await startSimulator({ misbehave: JSON.stringify({ fail: [{ kind }] }) });
      const farm = await FarmParts.start({ AMBERTRACE_API_KEY: KEY, AMBERTRACE_BASE_URL: simulator.baseUrl });
      try {
        const run = await farm.drive(TEXT);
        await rollout(farm, run.run);
        await verify(farm, run.run);
        await collect(farm, run.run);
        expect(await run.end).toEqual({ state: 'stopped' });
        expect(await run.ledger.field('exit')).toBe('2');
        expect(await run.ledger.field('reason')).toMatch(/verifier refuses/);
        expect(JSON.stringify(farm.lines)).not.toContain(KEY);
        expect(await run.ledger.field('reason')).not.toContain(KEY);
      } finally {
        await farm.close();
        await simulator.close();
      }
    },
  );

  it('adds the verifier’s reward to the environment’s for another task that says verify', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive({ ...SAY, tasks: [say('s0', true)], domain: DOMAIN });
    const sandbox = new GatedSandbox();
    sandbox.release();
    await rollout(farm, run.run, sandbox);
    await verify(farm, run.run);
    await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    const verified = farm.lines.filter((line) => line.msg === 'verified');
    expect(verified).toHaveLength(3);
    const played = farm.lines.filter((line) => line.msg === 'attempt').map((line) => line.reward as number);
    expect(verified[0]?.reward).not.toBe(played[0]);
    expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true });
  });

  it('that is told to stop gives members back that wait for an answer; another one asks again', async (context) => {
    const farm = await parts(context, { fail: [{ kind: 'hang', first: 1 }] });
    const run = await farm.drive(TEXT);
    await rollout(farm, run.run);
    const first = await verify(farm, run.run);
    await until('it asks', async () => (await run.status()).waiting_for.some((w) => w.phase === 'asking the verifier'));
    await first.stop();
    await verify(farm, run.run);
    await collect(farm, run.run);
    expect(await run.end).toEqual({ state: 'done' });
    expect((await run.status()).members).toMatchObject({ completed: 2 });
    const attempts = farm.lines.filter((line) => line.msg === 'attempt');
    // What was rolled is not rolled again.
    expect(attempts).toHaveLength(2);
  });
});

describe.concurrent('a collect worker', () => {
  it('whose store cannot be written pauses the run, and goes on when it can', async (context) => {
    const farm = await parts(context);
    const run = await farm.drive({ group_size: 2, tasks: guessTasks(2), policy: { kind: 'scripted', actions: [4] } });
    await rollout(farm, run.run);
    await until('all groups are closed', async () => (await run.status()).groups.closed === 2);
    // Somebody put a file where the run's folder belongs: also root cannot write there.
    const runs = path.join(farm.config.store, 'runs');
    if (existsSync(runs)) renameSync(runs, `${runs}.aside`);
    writeFileSync(runs, '');
    await collect(farm, run.run);
    await until('the run is paused', async () => (await run.status()).state === 'paused');
    rmSync(runs);
    if (existsSync(`${runs}.aside`)) renameSync(`${runs}.aside`, runs);
    expect(await run.end).toEqual({ state: 'done' });
    expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, groups: 2 });
  });

  const closedRun = async (farm: FarmParts) => {
    const run = await farm.drive({ group_size: 2, tasks: guessTasks(2), policy: { kind: 'scripted', actions: [4] } });
    await rollout(farm, run.run);
    await until('all groups are closed', async () => (await run.status()).groups.closed === 2);
    run.driver.drain();
    await run.end;
    return run;
  };

  it('ends a run whose groups are all closed, though something paused it meanwhile', async (context) => {
    const farm = await parts(context);
    const run = await closedRun(farm);
    await run.ledger.setState('paused', 'the store was full');
    await collect(farm, run.run);
    await until('it is done', async () => (await run.status()).state === 'done');
    expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, groups: 2 });
  });

  it('ends a run whose manifest another one wrote before it died', async (context) => {
    const farm = await parts(context);
    const run = await closedRun(farm);
    await run.ledger.setField('manifest', '1');
    await collect(farm, run.run);
    await until('it is done', async () => (await run.status()).state === 'done');
  });
});
