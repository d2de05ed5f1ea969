// Redis that comes back as another server: restarted, with an older ledger than it had acknowledged, or with none at all.
// The store's shards win; every member is in the run's account exactly once.

import { cpSync, existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { cursorOf, openResults } from '../../src/cli/results-reader.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import type { ResultLine } from '../../src/shared/store/results.ts';
import { verifyRun } from '../../src/shared/store/verify-run.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const [SIZE, IN_FLIGHT] = [2, 8];
/** Each stretch of guesses is a shard (64 groups); behind it as many commands as may be in flight wait to be let on. */
const [STRETCHES, GUESSES, HELD] = [3, 66, IN_FLIGHT / SIZE];
const GROUPS = STRETCHES * (GUESSES + HELD) + HELD;
const TASKS = Array.from({ length: GROUPS }, (_, i) => {
  if (i % (GUESSES + HELD) < GUESSES && i < GROUPS - HELD) return { ...guessTasks(1)[0], id: `t${i}`, seed: i };
  return {
    id: `t${i}`,
    env: 'command',
    config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 60 },
  };
});

async function atWork({ onTestFinished }: TestContext) {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  const aof = path.join(farm.server.folder, 'appendonlydir');
  const copy = `${aof}.older`;
  const keep = (): void => cpSync(aof, copy, { recursive: true });
  const spec = {
    group_size: SIZE,
    tasks: TASKS,
    policy: { kind: 'scripted', actions: [4, 2, 6, 1] },
    limits: { in_flight: IN_FLIGHT },
  };
  const sandbox = new GatedSandbox();
  return {
    farm,
    keep,
    /** Lets the run on, to the end of its next stretch or (all) to its own. */
    on: (how: 'one' | 'all'): void => (how === 'all' ? sandbox.release() : sandbox.admit(IN_FLIGHT)),
    /** Killed, and started on what was kept, if anything was. */
    comeBack: async (): Promise<void> => {
      await farm.server.kill();
      if (existsSync(copy)) {
        rmSync(aof, { recursive: true });
        cpSync(copy, aof, { recursive: true });
      }
      await farm.server.restart();
    },
    drive: async () => {
      const run = await farm.drive(spec);
      const seat = farm.seat('rollout', run.run, 2);
      const rollout = await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker]));
      farm.onClose(() => rollout.stop());
      const collect = await startCollectWorker(farm.seat('collect', run.run), run.run);
      farm.onClose(() => collect.stop());
      const shards = async (): Promise<number> => Number(await run.ledger.field('shards'));
      return { ...run, shards };
    },
    said: (what: RegExp): boolean => farm.lines.some((line) => what.test(line.msg ?? '')),
  };
}

async function expectSound(farm: FarmParts, run: string): Promise<void> {
  const account = await verifyRun(farm.store, run);
  expect(account).toMatchObject({ ok: true, groups: GROUPS, completed: GROUPS * SIZE });
}

describe.concurrent('Redis that comes back', () => {
  it('with all that it had goes on after a look at the store', { timeout: 240_000 }, async (context) => {
    const parts = await atWork(context);
    const run = await parts.drive();
    const before = await run.ledger.field('server');
    await until('a shard is committed', async () => (await run.shards()) >= 1);
    await parts.comeBack();
    parts.on('all');
    expect(await until('the run ends', () => Promise.race([run.end, null]), { withinMs: 150_000 })).toEqual({
      state: 'done',
    });
    expect(await run.ledger.field('server')).not.toBe(before);
    expect(parts.said(/its ledger has all that the store has/)).toBe(true);
    expect(parts.said(/has lost writes/)).toBe(false);
    await expectSound(parts.farm, run.run);
  });

  it('with an older ledger follows the store: every member exactly once', { timeout: 240_000 }, async (context) => {
    const parts = await atWork(context);
    const run = await parts.drive();
    await until('a shard is committed', async () => (await run.shards()) >= 1);
    parts.keep();
    for (const shards of [2, 3]) {
      parts.on('one');
      await until('one more is', async () => (await run.shards()) >= shards);
    }
    const reader = await openResults(parts.farm.config, parts.farm.server.redis, run.run);
    const given: ResultLine[] = [];
    for await (const row of reader.after(0)) given.push(row);
    await parts.comeBack();
    parts.on('all');
    expect(await until('the run ends', () => Promise.race([run.end, null]), { withinMs: 150_000 })).toEqual({
      state: 'done',
    });
    expect(parts.said(/has lost writes: the ledger follows the store/)).toBe(true);
    await expectSound(parts.farm, run.run);
    // What was given is still so, or its cursor is known to be gone: nobody goes on behind it as if nothing had happened.
    const now: string[] = [];
    for await (const row of reader.after(0)) now.push(row.line);
    for (const row of given) {
      const at = await reader.seqOf(cursorOf(row.line));
      const same = now[row.seq - 1] === row.line;
      expect(at).toMatchObject(same ? { seq: row.seq } : { code: 'cursor_lost' });
      expect(await reader.stands(row)).toBe(same);
    }
    // The ledger's own account is that of the store too.
    expect(await run.ledger.fields()).toMatchObject({ accepted: String(GROUPS * SIZE), closed: String(GROUPS) });
  });

  it('knowing nothing of the run has it opened again, and adopts its shards', { timeout: 240_000 }, async (context) => {
    const parts = await atWork(context);
    await parts.farm.server.redis.set('before', 'the run');
    parts.keep();
    const run = await parts.drive();
    await until('a shard is committed', async () => (await run.shards()) >= 1);
    parts.on('one');
    await until('another is', async () => (await run.shards()) >= 2);
    const since = await run.ledger.field('opened_at');
    await parts.comeBack();
    parts.on('all');
    expect(await until('the run ends', () => Promise.race([run.end, null]), { withinMs: 150_000 })).toEqual({
      state: 'done',
    });
    expect(parts.said(/has forgotten the run/)).toBe(true);
    expect(await run.ledger.field('opened_at')).toBe(since);
    expect(parts.said(/has lost writes: the ledger follows the store/)).toBe(true);
    await expectSound(parts.farm, run.run);
  });

  it('from having been a replica is looked at like another server, and named while it is one', async (context) => {
    const { farm, said } = await atWork(context);
    const { redis } = farm.server;
    const run = await farm.drive({
      group_size: 1,
      tasks: guessTasks(1),
      policy: { kind: 'scripted', actions: [4] },
    });
    const before = await run.ledger.field('server');
    await redis.call('REPLICAOF', '127.0.0.1', '1');
    await until('it is named', () => said(/^waiting for Redis: it is a replica now/));
    await redis.call('REPLICAOF', 'NO', 'ONE');
    await until('the ledger was compared', async () => {
      const now = await run.ledger.field('server');
      return now !== before && now === (await run.ledger.server());
    });
    await until('it goes on', async () => (await run.status()).state === 'running');
  });

  it('takes no shard whose boundaries were fixed on the server before', async (context) => {
    const parts = await atWork(context);
    const run = await parts.farm.drive({
      group_size: 1,
      tasks: guessTasks(1),
      policy: { kind: 'scripted', actions: [4] },
    });
    run.driver.drain();
    await run.end;
    const key = `${runKey(run.run)}:run`;
    // One group is closed.
    await parts.farm.server.redis.hset(key, 'closed', 1);
    const fixed = await run.ledger.fixShard({ most: 10, least: 1, final: true });
    if (fixed === null) throw new Error('nothing was fixed');
    await parts.comeBack();
    const link = 'a'.repeat(64);
    expect(await run.ledger.commit({ ...fixed, link })).toBe('superseded');
    await expect(run.ledger.fixShard({ most: 10, least: 1, final: true })).rejects.toThrow(/another server/);
    // Compared by now, and the same range fixed again by somebody else: the old one's bytes are still not taken.
    expect(await run.ledger.reconciled(await run.ledger.server())).toBe(true);
    expect(await run.ledger.commit({ ...fixed, link })).toBe('superseded');
    expect(await run.ledger.fixShard({ most: 10, least: 1, final: true })).toMatchObject({ from: 1, to: 1 });
    expect(await run.ledger.commit({ ...fixed, link })).toBe('committed');
  });

  it('rests the run, by name, while the store cannot be asked', async (context) => {
    const parts = await atWork(context);
    const { farm } = parts;
    const run = await farm.drive({
      group_size: 1,
      tasks: guessTasks(1),
      policy: { kind: 'scripted', actions: [4] },
    });
    // As if this Redis were another one, and the store had gone.
    const { store } = run.settings;
    run.settings.store = 'gone://store';
    await farm.server.redis.hset(`${runKey(run.run)}:run`, 'server', 'another');
    const status = await until('it rests', async () => {
      const now = await run.status();
      return now.state === 'paused' && now;
    });
    expect(status.reason).toMatch(/Redis came back as another server/);
    await until('it says why', async () => /could not be compared/.test((await run.status()).reason ?? ''));
    run.settings.store = store;
    await until('it goes on', async () => (await run.status()).state === 'running');
  });
});
