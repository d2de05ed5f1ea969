// The interactive lane with whole commands: real workers in processes of their own, real boxes.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Command, TestFarm } from '../support/farm.ts';
import { call, post, type Reply } from '../support/gateway-fixture.ts';
import { slowSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

let farm: TestFarm;
beforeEach(() => {
  farm = new TestFarm();
});
afterEach(async () => {
  await farm.close();
});

const env = { name: 'command', config: { files: { 'a.txt': 'x' }, task: 't', expected_stdout: 'x', timeout: 9 } };
const slowly = (seconds: number): string => JSON.stringify(['sh', '-c', `sleep ${seconds}; cat a.txt`]);
const score = (url: string, completions: string[]): Promise<Reply> => post(`${url}/v1/score`, { completions, env });
const ready = (command: Command): Promise<string> =>
  until('the gateway says where it is', () => /^http:\S+/.exec(command.stdout)?.[0]);

async function startWorker(concurrency: number): Promise<Command> {
  const worker = farm.start('worker', 'rollout', '--concurrency', String(concurrency));
  await until('the worker is there', () => worker.stderr.includes('ready'));
  return worker;
}

/** Samples that it scored, by the request that they belong to. */
function scoredBy(worker: Command): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [, call = ''] of worker.stderr.matchAll(/"sample":"([^."]+)\./g))
    counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
}

describe('samples that somebody waits for', () => {
  test('go to the workers, not into the gateway; a worker that is killed loses none, and nothing is left', async () => {
    const [first, second] = [await startWorker(1), await startWorker(1)];
    const serve = farm.start('serve', '--port', '0');
    const url = await ready(serve);
    const scored = score(url, new Array(6).fill(slowly(2)));
    await until('both are at work', () => farm.containers.length >= 4, { withinMs: 60_000 });
    first.process.kill('SIGKILL');
    const { json } = await scored;
    expect(json.rewards).toEqual(new Array(6).fill(1));
    await until('the other one did the rest', () => ([...scoredBy(second).values()][0] ?? 0) >= 4);
    // From the command line too.
    const input = farm.file('items.jsonl', `${JSON.stringify({ prompt: '', completion: slowly(0) })}\n`);
    const args = ['--env', 'command', '--env-config', JSON.stringify(env.config), '--input', input];
    const { code, stdout, stderr } = await farm.run('score', ...args);
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout).reward).toBe(1);
    await until('it did that too', () => scoredBy(second).size === 2);
    for (const command of [serve, second]) command.process.kill('SIGTERM');
    await Promise.all([serve.ended, second.ended]);
    await farm.nothingLeft({ withinMs: 60_000 });
  });

  test('do not wait for a run that keeps every slot busy', async () => {
    const up = farm.start('up', '--port', '0');
    const url = await until('the gateway says where it is', () => /http:\/\/[\d.]+:\d+/.exec(up.stderr)?.[0]);
    const spec = slowSpec(farm, { groups: 20, size: 4, seconds: 100 });
    await until(
      'the run is submitted',
      async () => (await farm.run('run', spec, '--run-id', 'big', '--detach')).code === 0,
    );
    const busy = async (): Promise<boolean> => (await call(`${url}/v1/runs/big`)).json.members.in_flight >= 2;
    await until('the run is at work', async () => (await busy()) && farm.containers.length >= 2, { withinMs: 60_000 });
    const { json } = await score(url, [slowly(0), slowly(0)]);
    expect(json.rewards).toEqual([1, 1]);
    // They were over before any slot of the run's was free.
    expect((await call(`${url}/v1/runs/big`)).json.members.accepted).toBe(0);
    await farm.run('cancel', 'big');
    up.signalGroup('SIGINT');
    up.signalGroup('SIGINT');
    await up.ended;
    await farm.nothingLeft({ withinMs: 60_000 });
  });

  test('without workers the gateway alone scores them, in boxes of its own', async () => {
    const serve = farm.start('serve', '--port', '0');
    const url = await ready(serve);
    expect((await score(url, [slowly(0)])).json.rewards).toEqual([1]);
    serve.process.kill('SIGTERM');
    await serve.ended;
    const input = farm.file('items.jsonl', `${JSON.stringify({ prompt: '', completion: slowly(0) })}\n`);
    const args = ['score', '--env', 'command', '--env-config', JSON.stringify(env.config), '--input', input];
    expect(JSON.parse((await farm.run(...args)).stdout).reward).toBe(1);
    // A Redis that is named and not there is no reason to score elsewhere.
    farm.env.REDIS_URL = 'redis://127.0.0.1:1';
    expect(await farm.run(...args)).toMatchObject({ code: 3, stderr: expect.stringContaining('127.0.0.1:1') });
    await farm.nothingLeft();
  });
});
