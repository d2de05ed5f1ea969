import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { ensureBuilt } from '../../support/built.ts';
import { API_KEY, endRest, OPTIONS, tally, upstreamOf } from '../../support/fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';
import { type StubPlatform, startStub } from '../../support/stub-platform.ts';

const SCRIPT = fileURLToPath(new URL('../../support/fleet-process.mjs', import.meta.url));

interface Member {
  child: ChildProcess;
  ready: Promise<void>;
  logs: string[];
  ask(from: number, count: number): Promise<string[]>;
}

let server: TestRedis;
let stub: StubPlatform;
let members: Member[] = [];
beforeAll(() => ensureBuilt(), 120_000);
beforeEach(async () => {
  server = await startRedis();
  stub = await startStub();
  members = [];
});
afterEach(async () => {
  for (const { child } of members) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  await stub.close();
  await server.close();
});

async function start(count: number, limits: object = {}): Promise<Member[]> {
  for (let i = 0; i < count; i++) {
    const { path: socket } = server.place.options;
    const order = {
      socket,
      baseUrl: stub.baseUrl,
      apiKey: API_KEY,
      limits: { concurrency: 4, ...limits },
      options: { ...OPTIONS, deadlineMs: 60_000 },
    };
    const child = spawn(process.execPath, [SCRIPT, JSON.stringify(order)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const logs: string[] = [];
    const waiting: ((kinds: string[]) => void)[] = [];
    const ready = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
        const said = JSON.parse(line) as 'ready' | { kinds: string[] } | { log: string };
        if (said === 'ready') resolve();
        else if ('log' in said) logs.push(said.log);
        else waiting.shift()?.(said.kinds);
      });
    });
    members.push({
      child,
      ready,
      logs,
      ask: (from, n) =>
        new Promise((resolve) => {
          waiting.push(resolve);
          child.stdin?.write(`${JSON.stringify({ from, count: n })}\n`);
        }),
    });
  }
  await Promise.all(members.map((member) => member.ready));
  return members;
}

test('four processes started at once, half of what they want in common: each query reaches the platform once', async () => {
  stub.behave = () => ({ delayMs: 30 });
  const fleet = await start(4);
  // 0..199, 100..299, 200..399, 300..499: 500 distinct of 800.
  const kinds = await Promise.all(fleet.map((member, i) => member.ask(i * 100, 200)));
  expect(tally(kinds.flat())).toEqual({ verdict: 800 });
  expect(tally([...stub.asked.values()].map(String))).toEqual({ 1: 500 });
  expect(stub.most).toBeLessThanOrEqual(4);
  const again = await Promise.all(fleet.map((member) => member.ask(0, 500)));
  expect(tally(again.flat())).toEqual({ verdict: 2000 });
  expect(stub.asked.size).toBe(500);
  expect([...stub.asked.values()].every((count) => count === 1)).toBe(true);
});

test('kill -9 of a process costs at most one more asking of what it had in flight, and nobody waits for ever', async () => {
  const [victim, ...others] = (await start(3, { concurrency: 2, tries: 1 })) as [Member, Member, Member];
  stub.behave = () => ({ hang: true });
  void victim.ask(0, 100);
  await expect.poll(() => stub.asked.size).toBe(100);
  const waiting = others.map((member) => member.ask(0, 150));
  await expect.poll(async () => (await upstreamOf(server))?.waiting).toBe(50);
  stub.behave = () => undefined;
  victim.child.kill('SIGKILL');
  expect(tally((await Promise.all(waiting)).flat())).toEqual({ verdict: 300 });
  // Not one by one: two calls of fifty in parts of seven.
  const again = stub.calls.slice(2).filter((call) => call.queries.some((query) => Number(query.slice(6)) < 100));
  expect(Math.max(...again.map((call) => call.queries.length))).toBe(7);
  expect(again.length).toBeLessThanOrEqual(17);
  for (let i = 0; i < 150; i++) expect(stub.asked.get(`query ${i}`)).toBe(i < 100 ? 2 : 1);
});

test('the breaker opens once for four processes and is told once', async () => {
  stub.behave = () => ({ status: 503, body: '<html></html>' });
  const fleet = await start(4, { backoffMs: 20, concurrency: 1, breakerCooldownMs: 60_000 });
  const kinds = await Promise.all(fleet.map((member, i) => member.ask(i * 100, 100)));
  expect(tally(kinds.flat())).toEqual({ unavailable: 400 });
  expect(stub.calls.length).toBe(5);
  stub.behave = () => ({ delayMs: 100 });
  await endRest(server);
  const back = await Promise.all(fleet.map((member, i) => member.ask(1000 + i * 100, 100)));
  expect(tally(back.flat())).toEqual({ verdict: 400 });
  expect(stub.calls[5]?.queries.length).toBe(1);
  expect(fleet.flatMap((member) => member.logs).sort()).toEqual([
    'verifier circuit closed',
    'verifier circuit half open: one probe',
    'verifier circuit open',
  ]);
});
