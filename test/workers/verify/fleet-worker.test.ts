// The verify worker over the fleet's asking: what a run's members get when the verifier is shut, and when the budget is spent.

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startRolloutWorker } from '../../../src/workers/rollout/worker.ts';
import { startVerifyWorker } from '../../../src/workers/verify/worker.ts';
import { FarmParts } from '../../support/farm-parts.ts';
import { endRest } from '../../support/fleet.ts';
import { GatedSandbox } from '../../support/gated-sandbox.ts';
import { type StubPlatform, startStub } from '../../support/stub-platform.ts';
import { until } from '../../support/until.ts';

const KEY = 'at_canary_worker_77';
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** `tasks` groups of four: two and two members ask the same. */
async function runOf(stub: StubPlatform, tasks: number, limits: object, workers = 1) {
  const farm = await FarmParts.start({ AMBERTRACE_API_KEY: KEY, AMBERTRACE_BASE_URL: stub.baseUrl });
  closing.push(
    () => stub.close(),
    () => farm.close(),
  );
  const completion = (age: number): string => `<decision>{"answer": "permit", "facts": {"age": ${age}}}</decision>`;
  const lines = Array.from({ length: tasks * 4 }, (_, i) => ({
    task_id: `t${Math.floor(i / 4)}`,
    completion: completion(Math.floor(i / 2)),
  }));
  writeFileSync(path.join(farm.folder, 'c.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const run = await farm.drive({
    group_size: 4,
    tasks: Array.from({ length: tasks }, (_, i) => ({ id: `t${i}`, env: 'text', config: {}, prompt: 'May it?' })),
    policy: { kind: 'completions', path: 'c.jsonl' },
    domain: { platform_id: 1, query_template: 'Permit? {facts}', parser: 'json_block' },
    limits,
  });
  const seat = farm.seat('rollout', run.run, 8);
  const roles = [await startRolloutWorker(seat, new GatedSandbox(), async () => new Set([seat.worker]))];
  for (let i = 0; i < workers; i++) roles.push(await startVerifyWorker(farm.seat('verify', run.run, 16)));
  for (const role of roles) farm.onClose(() => role.stop());
  return { farm, run };
}

test('an open breaker pauses the run, and its members wait uncharged and without an outcome', async () => {
  const stub = await startStub(() => ({ status: 503, body: '<html></html>' }));
  const { farm, run } = await runOf(stub, 3, {});
  await until('the run is paused', async () => (await run.status()).state === 'paused');
  const status = await run.status();
  expect(status.reason).toMatch(/verifier is shut: circuit open: HTTP 503/);
  expect(status.members).toMatchObject({ accepted: 0, no_result: 0 });
  // Five that failed in a row, and what was under way beside them.
  expect(stub.calls.length).toBeLessThan(5 + 16);
  const given = farm.lines.filter((line) => line.msg === 'verified');
  expect(given.map((line) => [line.status, line.ledger, line.attempt])).toEqual(
    given.map(() => ['given back', 'retry', 1]),
  );
  expect(farm.lines.filter((line) => line.msg === 'verifier circuit open').length).toBe(1);
  expect(JSON.stringify(farm.lines)).not.toContain(KEY);
});

test('members of two workers with equal queries cost one each, and a spent budget is no result: budget', async () => {
  const stub = await startStub();
  const { run } = await runOf(stub, 6, { verifier_calls: 8 }, 2);
  await until('all groups are closed', async () => (await run.status()).groups.closed === 6);
  // Twelve distinct queries of two members each; eight may be asked.
  expect((await run.status()).members).toMatchObject({ completed: 16, no_result: 8, by_cause: { budget: 8 } });
  expect([...stub.asked.values()]).toEqual(new Array(8).fill(1));
});

test('a run whose verifier was shut for a while spends its budget on distinct queries only, and completes', async () => {
  let down = true;
  const stub = await startStub(() => (down ? { status: 503, body: '<html></html>' } : undefined));
  // Six distinct queries, and as many may be asked.
  const { run, farm } = await runOf(stub, 3, { verifier_calls: 6 });
  await until('members came back', () => farm.lines.some((line) => line.status === 'given back'));
  await until('the run is paused', async () => (await run.status()).state === 'paused');
  down = false;
  // The breaker's rest is over.
  await endRest(farm.seat('verify', run.run, 1));
  await until('all groups are closed', async () => (await run.status()).groups.closed === 3, { withinMs: 100_000 });
  expect((await run.status()).members).toMatchObject({ completed: 12, no_result: 0 });
  expect(stub.asked.size).toBe(6);
}, 150_000);

test('a key that the platform refuses ends the whole run: stopped, exit 2, and every member is misconfigured, asked or not', async () => {
  const refusal = '{"ok": false, "error": {"code": "unauthorized", "message": "the key is not valid"}}';
  const stub = await startStub(() => ({ status: 401, body: refusal }));
  const { run } = await runOf(stub, 300, { in_flight: 8 });
  await until('all groups are closed', async () => (await run.status()).groups.closed === 300, { withinMs: 100_000 });
  const status = await run.status();
  expect(status.state).toBe('stopped');
  expect(status.reason).toMatch(/the verifier refuses: HTTP 401, unauthorized/);
  expect(status.members).toMatchObject({ completed: 0, no_result: 1_200, by_cause: { misconfigured: 1_200 } });
  expect(await run.ledger.field('exit')).toBe('2');
  expect(stub.calls.length).toBeLessThanOrEqual(16);
}, 150_000);
