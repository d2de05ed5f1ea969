// A whole night without a part of the farm, by the ledger's clock: the run rests, says for how long, and in the morning goes
// on by itself; no deadline has come nearer, no attempt was charged, nobody is lost.

import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { runKey } from '../../src/shared/ledger/script.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FLEET_KEY, readUpstreams } from '../../src/workers/verify/fleet/upstream.ts';
import { startVerifyWorker } from '../../src/workers/verify/worker.ts';
import { type DrivenRun, FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { startStub } from '../support/stub-platform.ts';
import { until } from '../support/until.ts';

const NIGHT_S = 10 * 3_600;
const [GROUPS, SIZE, DEADLINE_S] = [4, 3, 600];
/** A night and no more. */
const LIMITS = { paused_s: 12 * 3_600 };

interface Outage {
  reason: RegExp;
  begin(): Promise<void> | void;
  end(): Promise<void> | void;
}

interface Parts {
  farm: FarmParts;
  run: DrivenRun;
  sandbox: GatedSandbox;
}

const boxed = {
  tasks: Array.from({ length: GROUPS }, (_, i) => ({
    id: `s${i}`,
    env: 'command',
    config: { files: {}, task: 'x', expected_stdout: 'hello', timeout: 10 },
  })),
  policy: { kind: 'scripted', actions: [['echo', 'hello']] },
};
const asked = {
  tasks: Array.from({ length: GROUPS }, (_, i) => ({ id: `t${i}`, env: 'text', config: {}, prompt: 'May it?' })),
  policy: { kind: 'completions', path: 'c.jsonl' },
  domain: { platform_id: 1, query_template: 'Permit? {facts}', parser: 'json_block' },
};

async function farmOf({ onTestFinished }: TestContext, baseUrl = 'http://127.0.0.1:9'): Promise<FarmParts> {
  const farm = await FarmParts.start({ AMBERTRACE_API_KEY: 'at_night', AMBERTRACE_BASE_URL: baseUrl });
  onTestFinished(() => farm.close());
  return farm;
}

async function atWork(farm: FarmParts, spec: object, before: (parts: Parts) => Outage): Promise<void> {
  const sandbox = new GatedSandbox();
  const groups = { close: 'all', deadline_s: DEADLINE_S };
  const run = await farm.drive({ group_size: SIZE, groups, limits: LIMITS, ...spec });
  const outage = before({ farm, run, sandbox });
  sandbox.release();
  await outage.begin();
  const seat = farm.seat('rollout', run.run, 2);
  const roles = [
    await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker])),
    await startVerifyWorker(farm.seat('verify', run.run)),
    await startCollectWorker(farm.seat('collect', run.run), run.run),
  ];
  for (const role of roles) farm.onClose(() => role.stop());
  const resting = async () => {
    const status = await run.status();
    return status.paused_for_s !== undefined && status;
  };
  const evening = await until('the run rests', resting, { withinMs: 60_000 });
  const clock = Number(await run.ledger.field('clock'));
  await farm.server.redis.hincrby(`${runKey(run.run)}:run`, 'skew', NIGHT_S * 1_000);
  const night = await until('it rests still', resting);
  expect(night.reason).toMatch(outage.reason);
  expect(night.paused_for_s).toBeGreaterThan(NIGHT_S);
  expect(night.stops_in_s).toBeLessThan(LIMITS.paused_s - NIGHT_S);
  expect(night.members.no_result).toBe(0);
  expect(night.members.accepted).toBe(evening.members.accepted);
  await outage.end();
  await until('all are accepted', async () => (await run.status()).groups.closed === GROUPS, { withinMs: 100_000 });
  expect(await run.end).toEqual({ state: 'done' });
  // What was at work goes on counting; the night itself is none of it.
  expect(Number(await run.ledger.field('clock')) - clock).toBeLessThan((DEADLINE_S / 2) * 1_000);
  expect(await verifyRun(farm.store, run.run)).toMatchObject({ ok: true, completed: GROUPS * SIZE, noResult: 0 });
  const attempts = farm.lines.filter((line) => line.status === 'completed').map((line) => line.attempt);
  expect(new Set(attempts)).toEqual(new Set([1]));
}

describe.concurrent('a night without', { timeout: 240_000 }, () => {
  it('the engine', async (context) => {
    await atWork(await farmOf(context), boxed, ({ sandbox }) => ({
      reason: /engine does not answer/,
      begin: () => {
        sandbox.state = 'down';
      },
      end: () => sandbox.release(),
    }));
  });

  it('the store', async (context) => {
    const farm = await farmOf(context);
    const place = path.join(farm.config.store, 'runs');
    await atWork(farm, boxed, () => ({
      reason: /store/,
      // A file where a folder belongs: root cannot write there either.
      begin: () => {
        if (existsSync(place)) renameSync(place, `${place}.aside`);
        writeFileSync(place, '');
      },
      end: () => {
        rmSync(place);
        if (existsSync(`${place}.aside`)) renameSync(`${place}.aside`, place);
      },
    }));
  });

  it('the verifier', async (context) => {
    let down = true;
    const stub = await startStub(() => (down ? { status: 503, body: '<html></html>' } : undefined));
    context.onTestFinished(() => stub.close());
    const farm = await farmOf(context, stub.baseUrl);
    const line = (i: number) => ({
      task_id: `t${Math.floor(i / SIZE)}`,
      completion: `<decision>{"answer": "permit", "facts": {"age": ${i}}}</decision>`,
    });
    const lines = Array.from({ length: GROUPS * SIZE }, (_, i) => `${JSON.stringify(line(i))}\n`);
    writeFileSync(path.join(farm.folder, 'c.jsonl'), lines.join(''));
    await atWork(farm, asked, () => ({
      reason: /verifier is shut/,
      begin: () => {},
      end: async () => {
        down = false;
        // The breaker's rest is over in the morning.
        const { redis } = farm.server;
        for (const { id } of await readUpstreams(redis)) await redis.hset(`${FLEET_KEY}:u:${id}`, 'till', 1);
      },
    }));
  });
});
