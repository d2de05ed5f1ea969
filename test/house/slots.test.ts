// Redis Cluster's rule, held to on one server: whatever a script, a transaction or a command touches lies in one slot. Seen
// from outside (MONITOR) while whole runs pass, so that a key which a script makes up on its way is seen too; and every
// script of the house is seen.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { InteractiveLane } from '../../src/shared/interactive/lane.ts';
import { forgetRun, rememberRun } from '../../src/shared/ledger/known-runs.ts';
import { type Attempt, MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../src/shared/ledger/run-ledger.ts';
import { EnginePermits } from '../../src/shared/permits/engine-permits.ts';
import { openRedis } from '../../src/shared/redis/connect.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { Exchange } from '../../src/workers/verify/fleet/exchange.ts';
import { startVerifyWorker } from '../../src/workers/verify/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { freePort } from '../support/port.ts';
import { startRedis } from '../support/redis-server.ts';
import { SlotWatch } from '../support/slot-watch.ts';
import { guessTasks } from '../support/spec.ts';
import { startStub } from '../support/stub-platform.ts';
import { until } from '../support/until.ts';

const SRC = fileURLToPath(new URL('../../src', import.meta.url));
const USER = fileURLToPath(new URL('../../infra/redis-user.conf', import.meta.url));
/** Those that only stand in front of others. */
const PRELUDES = /(^|\/)(common|state|limits|processes|cache|flights|calls)\.lua$/;
const scripts = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.lua') && !PRELUDES.test(file))
  .map((file) => ({ file, text: readFileSync(path.join(SRC, file), 'utf8') }));

test('keys of one script, one transaction, one command share a slot', async ({ onTestFinished }) => {
  const stub = await startStub();
  const environment = { AMBERTRACE_API_KEY: 'at_canary_slots', AMBERTRACE_BASE_URL: stub.baseUrl };
  const farm = await FarmParts.start(environment, '--port', String(await freePort()), '--bind', '127.0.0.1');
  onTestFinished(async () => {
    await farm.close();
    await stub.close();
  });
  const watch = await SlotWatch.on(farm.server.redis);
  await wholeRun(farm);
  await givenBack(farm);
  await interactive(farm);
  await permits(farm);
  await asking(farm);
  const unseen = (): string[] =>
    scripts.filter(({ text }) => !watch.scripts.some((sent) => sent.includes(text))).map(({ file }) => file);
  await until('every script was seen', () => unseen().length === 0).catch(() => {});
  watch.close();
  expect(unseen()).toEqual([]);
  expect(watch.faults).toEqual([]);
  const granted = new Set(rights().map((right) => right.split('|')[0]));
  expect([...watch.commands].filter((command) => !granted.has(command))).toEqual([]);
  // Nothing of ours, and nothing of the queue's, lies outside the names that an ACL can grant.
  expect([...watch.keys].filter((key) => !/^(farm:|\{farm:)/.test(key))).toEqual([]);
});

test('what reaches across slots is seen, in a script, in a transaction and in a command', async ({
  onTestFinished,
}) => {
  const port = await freePort();
  const server = await startRedis('--port', String(port), '--bind', '127.0.0.1');
  onTestFinished(() => server.close());
  const { redis } = server;
  const watch = await SlotWatch.on(redis);
  await redis.eval("redis.call('SET', KEYS[1], '1') return redis.call('GET', KEYS[1] .. 'x')", 1, 'farm:{a}:x');
  await redis.multi().set('farm:{a}:x', 1).set('farm:{a}:y', 1).exec();
  await redis.mget('farm:{a}:x', 'farm:{a}:y');
  await redis.eval("return redis.call('GET', 'farm:{b}:x')", 1, 'farm:{a}:x');
  await redis.multi().set('farm:{a}:x', 1).set('farm:{b}:x', 1).exec();
  await redis.mget('farm:{a}:x', 'farm:{b}:x');
  await redis.ping();
  await until('all three are seen', () => watch.faults.length === 3);
  expect(watch.faults.map((fault) => fault.split(' ')[0])).toEqual(['eval', 'a', 'mget']);
  watch.close();
});

/** Commands that the farm's own user has. */
function rights(): string[] {
  const line = readFileSync(USER, 'utf8')
    .split('\n')
    .find((one) => one.startsWith('user '));
  return [...(line ?? '').matchAll(/ \+([a-z|]+)/g)].map((match) => match[1] as string);
}

/** Sandboxed, light and verified members, a group in place of one that had no signal, to the manifest. */
async function wholeRun(farm: FarmParts): Promise<void> {
  const completion = '<decision>{"answer": "permit", "facts": {"age": 3}}</decision>';
  const ids = ['t0', 't0', 't1'];
  const lines = ids.flatMap((task_id) => [
    { task_id, completion },
    { task_id, completion },
  ]);
  writeFileSync(path.join(farm.folder, 'c.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const say = { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 };
  const run = await farm.drive({
    group_size: 2,
    tasks: [
      { id: 't0', env: 'text', config: {}, prompt: 'May it?' },
      { id: 't1', env: 'command', config: say },
    ],
    policy: { kind: 'completions', path: 'c.jsonl' },
    groups: { refill_degenerate: 1 },
    domain: { platform_id: 1, query_template: 'Permit? {facts}', parser: 'json_block' },
    audit: { fraction: 0 },
  });
  const seat = farm.seat('rollout', run.run);
  const sandbox = new GatedSandbox();
  sandbox.release();
  const roles = [
    await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker])),
    await startVerifyWorker(farm.seat('verify', run.run)),
    await startCollectWorker(farm.seat('collect', run.run), run.run),
  ];
  for (const role of roles) farm.onClose(() => role.stop());
  await until('the run is done', async () => (await run.status()).state === 'done');
}

/** Attempts that fail, workers that die, a ledger that is behind the store, a run that is cancelled and forgotten. */
async function givenBack(farm: FarmParts): Promise<void> {
  const { redis } = farm.seat('rollout', 'lost', 1);
  const run = await farm.drive({
    group_size: 2,
    tasks: guessTasks(20),
    policy: { kind: 'scripted', actions: [4] },
    limits: { in_flight: 8 },
  });
  const member = new MemberLedger(redis, 'one that dies');
  const begin = async (group: number): Promise<Attempt> =>
    await until('a member can be begun', async () => {
      const begun = await member.begin({ run: run.run, group, member: 0 }, 'rollout', { alone: true, suspects: true });
      return 'refused' in begun ? null : begun;
    });
  const failing = await begin(0);
  await member.joined(failing);
  await member.beat(run.run, [{ ...failing, phase: 'here' }]);
  await member.fail(failing, { cause: 'sandbox_lost', detail: 'x', charged: true, delayMs: 0 });
  await begin(1);
  await run.ledger.bury('one that dies', 'died', 3);
  const counts = { groups: 1, members: 2, completed: 2, no_result: 0, by_cause: {} };
  await run.ledger.adopt([{ to: 1, link: 'x', groups: [5], refills: [], counts } as never]);
  await run.ledger.reconciled(await run.ledger.server());
  const shard = await run.ledger.fixShard({ most: 1, least: 1, final: true });
  await run.ledger.commit({ number: 0, from: 1, to: 1, link: '', ...shard });
  const server = await run.ledger.server();
  await run.ledger.catchUp(server, { number: 9, from: 9, to: 9, link: 'x', refills: [] });
  await run.ledger.setState('cancelled');
  await until('its groups are closed', async () => (await run.status()).groups.closed === 20);
  await run.ledger.undrive('nobody');
  const gone = new RunLedger(redis, 'gone');
  await gone.open({ state: 'running', size: 1 });
  await rememberRun(redis, 'gone', 'lost');
  await forgetRun(redis, 'gone');
  expect(await gone.field('size')).toBe(null);
}

async function interactive(farm: FarmParts): Promise<void> {
  const { redis, place } = farm.seat('rollout', 'lane', 1);
  const lane = new InteractiveLane(redis, 'lane');
  const samples = ['a', 'b', 'c'].map((id) => ({ id, content: 'x' }));
  await lane.submit('call', 'gate', 60_000, 'shared', samples);
  await lane.tend('gate', ['a', 'b', 'c']);
  expect(await lane.someWait()).toBe(true);
  const taken = [await lane.take('1'), await lane.take('2')];
  const [first, second] = taken.map((sample) => sample ?? expect.unreachable('two samples wait'));
  await lane.beat([first, second] as never);
  await lane.settle(first as never, '{}');
  await lane.again(second as never, 'died', '{}');
  await lane.withdraw('call', ['b', 'c'], true);
  const listening = openRedis(place);
  expect((await lane.told(listening, 'gate', 1_000)).length).toBeGreaterThan(0);
  listening.disconnect();
}

async function permits(farm: FarmParts): Promise<void> {
  const { redis } = farm.seat('rollout', 'permits', 1);
  const mine = new EnginePermits(redis, 'engine', 'me', { startsAtOnce: 1, memoryMb: 10 });
  await mine.claim({ starting: 0, memoryMb: 0 }, 5);
  await mine.claim({ starting: 1, memoryMb: 5 }, 50);
  await mine.leave();
}

async function asking(farm: FarmParts): Promise<void> {
  const { redis } = farm.seat('verify', 'asking', 1);
  const identity = { upstream: 'u', process: 'p', platform: '1', key: 'k' };
  const exchange = new Exchange(redis, identity, { concurrency: 1 });
  const wanted = ['1', '2'].map((end) => ({ key: end.padStart(43, 'k'), sealed: Buffer.from('q') }));
  const options = { epoch: 'e', cache: true, ttlMs: 1_000, budget: 5, joined: 0, now: true, shown: 'u' };
  const { calls } = await exchange.join(options, wanted);
  const call = calls[0] ?? expect.unreachable('a call may be made');
  await exchange.hedge(call, [call.items]);
  await exchange.take();
  await exchange.tell(wanted);
  await exchange.beat({ mine: [call.token], dead: ['q'], abandon: 1 }, []);
  await exchange.leave(wanted.map(({ key }) => key));
}
