// The ledger is the truth, the queue a hint: each test first makes the failure happen that the ledger answers.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rememberRun } from '../../../src/shared/ledger/known-runs.ts';
import { BEAT_MS, LEASE_MS, MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import { DRIVER_LEASE_MS, RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { writeSettings } from '../../../src/shared/ledger/run-settings.ts';
import { readStatus } from '../../../src/shared/ledger/run-status.ts';
import { runKey } from '../../../src/shared/ledger/script.ts';
import type { Member } from '../../../src/shared/outcome.ts';
import { announce, type Present, type RoleName } from '../../../src/shared/presence.ts';
import { MemberQueue } from '../../../src/shared/queue.ts';
import { settingsWith } from '../../support/outcomes.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };
const HOUR_MS = 3_600_000;
const RULES = { close: 'all', at_least: 0, deadline_ms: 60_000, slot_wait_ms: 600_000, refill: 2, max_attempts: 3 };

async function opened(on: TestRedis, run: string, groups: number, size: number, settings: { settings?: string } = {}) {
  const ledger = new RunLedger(on.redis, run);
  await ledger.open({ size, groups, ...RULES, ...settings });
  const { epoch } = (await ledger.drive('driver')) as { epoch: string };
  const list = Array.from({ length: groups }, (_, g) => ({ taskId: `t${g}`, place: PLACE, lane: 'rollout' as const }));
  expect(await ledger.openGroups(epoch, 0, list)).toBe(groups);
  const worker = new MemberLedger(on.redis, 'worker-1');
  const begin = async (group: number, member: number) => {
    const attempt = await worker.begin({ run, group, member }, 'rollout');
    if ('refused' in attempt) throw new Error(`refused: ${attempt.refused}`);
    return attempt;
  };
  return { ledger, epoch, worker, begin };
}

const without = (member: number, detail = ''): Member => ({
  member,
  status: 'no_result',
  cause: 'environment_error',
  detail,
  attempts: 1,
});

async function redisMs({ redis }: TestRedis): Promise<number> {
  const [seconds, micros] = await redis.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

describe('texts and figures', () => {
  const texts = [
    '{"reward":0.7071067811865476}',
    '{"reward":1.0}',
    '{"list":[]}',
    '{"seed":9007199254740993}',
    '{"big":123456789012345678901234567890}',
  ];

  it.each(texts)('pass through as they are, where Lua’s own JSON makes another of %s', async (text) => {
    const through = await server.redis.call('EVAL', 'return cjson.encode(cjson.decode(ARGV[1]))', '0', text);
    expect(through).not.toBe(text);
    const run = `texts-${texts.indexOf(text)}`;
    const { worker, begin, ledger } = await opened(server, run, 1, 1);
    await worker.rolled(await begin(0, 0), text, []);
    const again = await worker.begin({ run, group: 0, member: 0 }, 'verify');
    if ('refused' in again) throw new Error(again.refused);
    expect(again.rolled).toBe(text);
    const member = without(0, text);
    await worker.accept(again, member, []);
    const [[, fields]] = (await server.redis.xrange(`${runKey(run)}:out`, '-', '+')) as [[string, string[]]];
    expect(fields[fields.indexOf('members') + 1]).toBe(`[${JSON.stringify(member)}]`);
    expect((await ledger.entries(1, 1))[0]?.closed.members).toEqual([member]);
  });
});

describe('a lease', () => {
  it('outlives a stall of six seconds right before a heartbeat, and is over ten seconds after a death', async () => {
    const { begin, worker } = await opened(server, 'lease', 1, 1);
    const attempt = await begin(0, 0);
    const before = await redisMs(server);
    expect(await worker.beat('lease', [{ ...attempt, phase: 'x' }])).toEqual(['ok']);
    const till = Number(await server.redis.hget(`${runKey('lease')}:g:0`, '0.l'));
    expect(till - before - BEAT_MS).toBeGreaterThan(6_000);
    // The driver looks every tenth of a second; a second is for the queue.
    expect(LEASE_MS + 1_100).toBeLessThan(10_000);
  });

  it('is given back by a clock that was set back: no member, no driver and no clock of a run waits for an hour', async () => {
    const run = 'set-back';
    const key = runKey(run);
    const { ledger, epoch, begin, worker } = await opened(server, run, 1, 2);
    await begin(0, 0);
    await ledger.tick(epoch);
    // What was written before the clock went back lies an hour ahead of it.
    for (const field of ['driver_until', 'ticked', 'seen']) await server.redis.hincrby(`${key}:run`, field, HOUR_MS);
    await server.redis.hincrby(`${key}:g:0`, '0.l', HOUR_MS);
    const written = Number(await server.redis.hget(`${key}:g:0`, '0.l'));
    expect(written - (await redisMs(server))).toBeGreaterThan(HOUR_MS);
    expect(await worker.begin({ run, group: 0, member: 0 }, 'rollout')).toEqual({ refused: 'leased' });

    const other = await ledger.drive('other');
    expect(other).toMatchObject({ heldBy: 'driver' });
    expect((other as { leftMs: number }).leftMs).toBeLessThanOrEqual(DRIVER_LEASE_MS);
    const clock = Number(await ledger.field('clock'));
    const tick = await ledger.tick(epoch);
    expect(typeof tick === 'object' && tick.clockMs).toBeGreaterThanOrEqual(clock);
    const skew = Number(await ledger.field('skew'));
    expect(written - ((await redisMs(server)) + skew)).toBeLessThanOrEqual(LEASE_MS);
    const status = await readStatus(server.redis, run);
    expect(status?.state).toBe('running');
    expect(status?.waiting_for[0]?.since_s).toBeLessThan(HOUR_MS / 1000 + 60);
    // And once more: what was added stays added.
    await server.redis.hincrby(`${key}:run`, 'seen', HOUR_MS);
    await ledger.tick(epoch);
    expect(Number(await ledger.field('skew'))).toBeGreaterThan(2 * HOUR_MS - 60_000);
  });
});

describe('a paused run', () => {
  it('says since when and until when, also while it tries again; something accepted ends the pause', async () => {
    const run = 'pause';
    const { ledger, worker, begin } = await opened(server, run, 1, 2);
    const attempt = await begin(0, 0);
    await ledger.setState('paused', 'the store is away');
    await server.redis.hincrby(`${runKey(run)}:run`, 'paused_since', -60_000);
    const seen = async () => await readStatus(server.redis, run);
    expect(await seen()).toMatchObject({ state: 'paused', reason: 'the store is away' });
    expect((await seen())?.paused_for_s).toBeGreaterThanOrEqual(60);
    await ledger.setState('running');
    expect(await seen()).toMatchObject({ state: 'running' });
    expect((await seen())?.reason).toBeDefined();
    await ledger.setState('paused', 'the store is away');
    expect((await seen())?.paused_for_s).toBeGreaterThanOrEqual(60);
    await worker.accept(attempt, without(0), []);
    await ledger.setState('running');
    expect((await seen())?.paused_for_s).toBeUndefined();
    await ledger.setState('paused', 'something else');
    expect((await seen())?.paused_for_s).toBeLessThan(60);
  });
});

describe('what was acknowledged', () => {
  it('is there after kill -9 right behind the answer', async () => {
    const own = await startRedis();
    try {
      const { ledger, worker, begin } = await opened(own, 'durable', 60, 2);
      const answers: string[] = [];
      for (let g = 0; g < 60; g++)
        for (const m of [0, 1]) {
          answers.push(await worker.accept(await begin(g, m), without(m), []));
          if (g % 20 === 19 && m === 1) await own.restart();
        }
      expect(new Set(answers)).toEqual(new Set(['accepted']));
      expect(await ledger.fields()).toMatchObject({ accepted: '120', closed: '60' });
      expect((await ledger.entries(1, 100)).map((e) => e.seq)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
    } finally {
      await own.close();
    }
  });
});

describe('a full Redis', () => {
  it('refuses the queue, and not the ledger: what is at work comes to its end, is committed and frees its room', async () => {
    const own = await startRedis();
    const queue = new MemberQueue(own.place, 'full');
    try {
      const { ledger, worker, begin } = await opened(own, 'full', 1, 1);
      const attempt = await begin(0, 0);
      await own.redis.call('CONFIG', 'SET', 'maxmemory', '1');
      const job = { group: 0, member: 0, stage: 'rollout', lane: 'rollout', next: 2 } as const;
      await expect(queue.add('full', [job])).rejects.toThrow(/OOM/);
      expect(await worker.beat('full', [{ ...attempt, phase: 'x' }])).toEqual(['ok']);
      expect(await worker.accept(attempt, without(0), [])).toBe('accepted');
      await ledger.setField('reason', 'full');
      expect(await ledger.fixShard({ most: 10, least: 1, final: true })).toMatchObject({ from: 1, to: 1 });
      expect(await ledger.commit({ number: 0, from: 1, to: 1, link: 'l' })).toBe('committed');
      expect(await readStatus(own.redis, 'full')).toMatchObject({ members: { accepted: 1 } });
    } finally {
      await queue.close();
      await own.close();
    }
  });
});

describe('what stays of a run', () => {
  it('is a bitmap and a few fields when its shards are committed; a late answer meets the bitmap', async () => {
    const run = 'bounded';
    const key = runKey(run);
    const { ledger, worker, begin } = await opened(server, run, 200, 2);
    const first = await begin(0, 0);
    await ledger.bury('worker-1', '', 3);
    for (let g = 0; g < 200; g++) for (const m of [0, 1]) await worker.accept(await begin(g, m), without(m), []);
    expect(await server.redis.xlen(`${key}:out`)).toBe(200);
    const fixed = await ledger.fixShard({ most: 1_000, least: 1, final: true });
    expect(await ledger.commit({ number: 0, from: fixed?.from ?? 0, to: fixed?.to ?? 0, link: 'l' })).toBe('committed');
    expect(await server.redis.xlen(`${key}:out`)).toBe(0);
    const left = (await server.redis.keys(`${key}:*`)).map((name) => name.slice(key.length)).sort();
    expect(left).toEqual([':causes', ':closed', ':out', ':run']);
    expect(await server.redis.strlen(`${key}:closed`)).toBe(200 / 8);
    expect(await worker.accept(first, without(0), [])).toBe('closed');
    expect(await ledger.fields()).toMatchObject({ accepted: '400', late: '1' });
  });

  it('is no more evidence than its cap, however many speak too late; the counter knows of all', async () => {
    const run = 'evidence';
    const { ledger, worker, begin } = await opened(server, run, 1, 1);
    const attempt = await begin(0, 0);
    await worker.accept(attempt, without(0), []);
    for (let i = 0; i < 30; i++)
      await Promise.all(Array.from({ length: 100 }, () => worker.accept(attempt, without(0, 'x'.repeat(5_000)), [])));
    expect(await ledger.field('late')).toBe('3000');
    expect(await server.redis.xlen(`${runKey(run)}:late`)).toBeLessThan(1_200);
  });

  it('lies in the hash slot of the run alone, so that its scripts run on a cluster too', async () => {
    const own = await startRedis();
    try {
      const { ledger, worker, begin, epoch } = await opened(own, 'slots', 3, 2);
      await worker.accept(await begin(0, 0), without(0), []);
      await worker.fail(await begin(0, 1), { cause: 'sandbox_lost', detail: '', charged: true, delayMs: 0 });
      await worker.rolled(await begin(1, 0), '{}', []);
      await ledger.tick(epoch);
      await ledger.setState('cancelled');
      await ledger.closeOpen(10);
      await worker.accept(await begin(2, 0).catch(() => ({ ...ATTEMPT, run: 'slots' })), without(0), []);
      const keys = await own.redis.keys('*');
      expect(keys.length).toBeGreaterThan(3);
      expect(keys.filter((name) => !name.startsWith('farm:{slots}'))).toEqual([]);
    } finally {
      await own.close();
    }
  });
});

const ATTEMPT = {
  run: '',
  group: 2,
  member: 0,
  token: 'none',
  attempt: 1,
  taskId: 't2',
  place: PLACE,
  rolled: null,
  blobs: [],
  knownSignature: null,
};

describe('a run whose workers are not there', () => {
  const seat = { realm: 'absent', worker: 'w', slots: {} };

  it('names those that it needs now, and none that it does not', async () => {
    const run = 'absent';
    await rememberRun(server.redis, run, 'absent');
    const { worker, begin } = await opened(server, run, 1, 2);
    const reason = async () => (await readStatus(server.redis, run))?.reason;
    expect(await reason()).toBe('there is no rollout worker: waiting for one');
    const rollout = await announce(server.redis, { ...seat, role: 'rollout' });
    expect(await reason()).toBeUndefined();
    for (const m of [0, 1]) await worker.rolled(await begin(0, m), '{}', []);
    expect(await reason()).toBe('there is no verify worker: waiting for one');
    await rollout.stop();
    expect(await reason()).toBe('there is no verify worker: waiting for one');
    const verify = await announce(server.redis, { ...seat, role: 'verify' });
    expect(await reason()).toBeUndefined();
    await verify.stop();
  });

  it('says of those that are left which key they hold, where the last one with its own has gone', async () => {
    const run = 'keyed';
    const key = 'a'.repeat(16);
    await rememberRun(server.redis, run, 'absent');
    const settings = writeSettings(settingsWith({ groups: 1, size: 1, keyFingerprint: key }));
    const { worker, begin } = await opened(server, run, 1, 1, { settings });
    const reason = async () => (await readStatus(server.redis, run))?.reason;
    const there = (role: RoleName, name: string, more: Partial<Present> = {}) =>
      announce(server.redis, {
        ...seat,
        role,
        slots: role === 'verify' ? { verify: 1 } : { light: 1 },
        worker: name,
        ...more,
      });
    const right = [await there('rollout', 'r', { key }), await there('verify', 'v', { key })];
    const other = [await there('rollout', 'o', { key: 'b'.repeat(16) }), await there('verify', 'm')];
    expect(await reason()).toBeUndefined();
    for (const { stop } of right) await stop();
    const left = (role: string) =>
      `there is no ${role} worker with the run’s AmberTrace key (aaaaaa; those that are there: ${role === 'rollout' ? 'bbbbbb' : 'none that they tell of'}): waiting for one`;
    expect(await reason()).toBe(left('rollout'));
    await worker.rolled(await begin(0, 0), '{}', []);
    expect(await reason()).toBe(left('verify'));
    for (const { stop } of other) await stop();
    expect(await reason()).toBe('there is no verify worker: waiting for one');
  });

  it('does not miss a collector that it has brought for itself', async () => {
    const run = 'brought';
    await rememberRun(server.redis, run, 'absent');
    const { worker, begin } = await opened(server, run, 2, 1);
    await worker.accept(await begin(0, 0), without(0), []);
    const rollout = await announce(server.redis, { ...seat, role: 'rollout' });
    const reason = async () => (await readStatus(server.redis, run))?.reason;
    const missing = 'there is no collect worker: waiting for one';
    expect(await reason()).toBe(missing);
    const other = await announce(server.redis, { ...seat, role: 'collect', realm: 'run.another' });
    expect(await reason()).toBe(missing);
    const own = await announce(server.redis, { ...seat, role: 'collect', realm: 'run.brought' });
    expect(await reason()).toBeUndefined();
    for (const { stop } of [rollout, other, own]) await stop();
  });
});
