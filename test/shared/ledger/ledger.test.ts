import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { readStatus } from '../../../src/shared/ledger/run-status.ts';
import { runKey } from '../../../src/shared/ledger/script.ts';
import { completedWith } from '../../support/outcomes.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };

let runs = 0;
async function openRun(fields: Record<string, string | number> = {}, groups = 1, size = 2) {
  const run = `ledger-${++runs}`;
  const ledger = new RunLedger(server.redis, run);
  await ledger.open({
    size,
    groups,
    close: 'all',
    at_least: 0,
    deadline_ms: 60_000,
    slot_wait_ms: 600_000,
    refill: 2,
    max_attempts: 3,
    ...fields,
  });
  const driven = await ledger.drive('driver');
  if (!('epoch' in driven)) throw new Error('not driven');
  const list = Array.from({ length: groups }, (_, g) => ({ taskId: `t${g}`, place: PLACE, lane: 'rollout' as const }));
  expect(await ledger.openGroups(driven.epoch, 0, list)).toBe(groups);
  const worker = new MemberLedger(server.redis, 'worker-1');
  const begin = async (group: number, member: number, stage: 'rollout' | 'verify' = 'rollout') => {
    const attempt = await worker.begin({ run, group, member }, stage);
    if ('refused' in attempt) throw new Error(`refused: ${attempt.refused}`);
    return attempt;
  };
  return { run, ledger, epoch: driven.epoch, worker, begin };
}
const expireLease = (run: string, group: number, member: number) =>
  server.redis.hset(`${runKey(run)}:g:${group}`, `${member}.l`, 1);

describe('a member', () => {
  it('is accepted once: the second answer is evidence and is not counted', async () => {
    const { ledger, worker, begin, run } = await openRun();
    const attempt = await begin(0, 0);
    expect(await worker.accept(attempt, completedWith(0, 1), [])).toBe('accepted');
    expect(await worker.accept(attempt, completedWith(0, 0.5), [])).toBe('superseded');
    const status = await readStatus(server.redis, run);
    expect(status?.members).toMatchObject({ accepted: 1, completed: 1 });
    expect(await ledger.field('late')).toBe('1');
  });

  it('is not begun while another attempt holds a fresh lease', async () => {
    const { worker, begin, run } = await openRun();
    await begin(0, 0);
    expect(await worker.begin({ run, group: 0, member: 0 }, 'rollout')).toEqual({ refused: 'leased' });
  });

  it('that the group does not have is not begun, whoever asks for it: a strange job changes nothing', async () => {
    const { worker, run } = await openRun();
    const before = await server.redis.hgetall(`${runKey(run)}:g:0`);
    for (const member of [2, 3, 9_999])
      expect(await worker.begin({ run, group: 0, member }, 'rollout')).toEqual({ refused: 'unknown' });
    expect(await worker.begin({ run, group: 9_999, member: 0 }, 'rollout')).toEqual({ refused: 'closed' });
    expect(await server.redis.hgetall(`${runKey(run)}:g:0`)).toEqual(before);
  });

  it('passes to a new attempt when the lease is over, and the old token may not speak any more', async () => {
    const { worker, begin, run } = await openRun();
    const old = await begin(0, 0);
    await expireLease(run, 0, 0);
    const fresh = await begin(0, 0);
    expect(fresh.token).not.toBe(old.token);
    expect(await worker.accept(old, completedWith(0, 1), [])).toBe('superseded');
    expect(
      await worker.beat(run, [
        { ...old, phase: 'x' },
        { ...fresh, phase: 'x' },
      ]),
    ).toEqual(['superseded', 'ok']);
    expect(await worker.accept(fresh, completedWith(0, -0.1), [])).toBe('accepted');
  });

  it('keeps every digit of its figures: Lua never parses them', async () => {
    const { ledger, worker, begin } = await openRun();
    await worker.accept(await begin(0, 0), completedWith(0, 0.1 + 0.2), []);
    await worker.accept(await begin(0, 1), completedWith(1, -1e-300), []);
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed.members).toEqual([completedWith(0, 0.1 + 0.2), completedWith(1, -1e-300)]);
  });

  it('is tried again for a charged failure until its attempts are spent, then has no result with the cause', async () => {
    const { ledger, worker, begin } = await openRun({ refill: 5 }, 1, 1);
    const failure = { cause: 'sandbox_lost', detail: 'the box "died"\n', charged: true, delayMs: 0 } as const;
    expect(await worker.fail(await begin(0, 0), failure)).toBe('retry');
    expect(await worker.fail(await begin(0, 0), failure)).toBe('retry');
    const third = await begin(0, 0);
    expect(third.attempt).toBe(3);
    expect(await worker.fail(third, failure)).toBe('no_result');
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed.members).toEqual([
      { member: 0, status: 'no_result', cause: 'sandbox_lost', detail: 'the box "died"\n', attempts: 3 },
    ]);
  });

  it('is tried again without end for what is not charged', async () => {
    const { worker, begin } = await openRun({ refill: 0 });
    for (let i = 0; i < 6; i++) {
      const attempt = await begin(0, 0);
      expect(attempt.attempt).toBe(1);
      expect(await worker.fail(attempt, { cause: 'sandbox_lost', detail: '', charged: false, delayMs: 0 })).toBe(
        'retry',
      );
    }
  });

  it('spends the group’s refills, not its own attempts alone', async () => {
    const { worker, begin } = await openRun({ refill: 1 });
    const failure = { cause: 'sandbox_lost', detail: '', charged: true, delayMs: 0 } as const;
    expect(await worker.fail(await begin(0, 0), failure)).toBe('retry');
    expect(await worker.fail(await begin(0, 1), failure)).toBe('no_result');
  });

  it('resumes at the verifier after a redelivery: what was rolled is not rolled again', async () => {
    const { worker, begin, run, ledger, epoch } = await openRun();
    const attempt = await begin(0, 0);
    const blob = { sha256: 'd'.repeat(64), bytes: Buffer.from([0, 255, 10, 13]) };
    expect(await worker.rolled(attempt, '{"x":1}', [blob])).toBe('rolled');
    expect(await worker.begin({ run, group: 0, member: 0 }, 'rollout')).toEqual({ refused: 'rolled' });
    const verify = await begin(0, 0, 'verify');
    expect(verify.rolled).toBe('{"x":1}');
    expect(verify.blobs).toEqual([blob]);
    await expireLease(run, 0, 0);
    await server.redis.zadd(`${runKey(run)}:live`, 0, '0-0');
    const due = await ledger.due(epoch, { rollout: 100, verify: 100 });
    expect(due?.members).toContainEqual({ group: 0, member: 0, lane: 'verify', next: 3, alone: false });
    expect((await begin(0, 0, 'verify')).rolled).toBe('{"x":1}');
  });

  const ALONE = { alone: true, suspects: true };

  it('is set aside as poison when workers die of one signature while it is alone in them, and not for deaths from outside', async () => {
    const { ledger, worker, run } = await openRun({}, 1, 1);
    const id = { run, group: 0, member: 0 };
    for (let i = 0; i < 4; i++) {
      expect(await worker.begin(id, 'rollout', { alone: true, suspects: false })).toHaveProperty('token');
      expect(await ledger.bury('worker-1', '', 3)).toBe(1);
    }
    for (const signature of ['SIGSEGV', 'SIGSEGV', 'exit 7', 'SIGSEGV', 'SIGSEGV', 'SIGSEGV']) {
      expect(await worker.begin(id, 'rollout', ALONE)).toHaveProperty('token');
      expect(await ledger.bury('worker-1', signature, 3)).toBe(1);
    }
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed.members).toMatchObject([{ status: 'no_result', cause: 'poison', detail: 'SIGSEGV' }]);
  });

  it('is not set aside for deaths in company, however many: they make a suspect of it, which begins only by itself', async () => {
    const { ledger, worker, run, epoch } = await openRun({}, 1, 3);
    const id = (member: number) => ({ run, group: 0, member });
    for (let i = 0; i < 5; i++) {
      // Each is let in as a suspect, and none is said to be alone.
      for (const m of [0, 1, 2]) await worker.begin(id(m), 'rollout', { alone: false, suspects: true });
      expect(await ledger.bury('worker-1', 'SIGSEGV', 3)).toBe(3);
    }
    expect(await ledger.field('accepted')).toBe('0');
    expect(await worker.begin(id(1), 'rollout')).toEqual({ refused: 'suspect' });
    const due = await ledger.due(epoch, { rollout: 100 });
    expect(due?.members.map((m) => m.alone)).toEqual([true, true, true]);
    const attempt = await worker.begin(id(1), 'rollout', ALONE);
    if ('refused' in attempt) throw new Error(attempt.refused);
    expect(await worker.accept(attempt, completedWith(1, 1), [])).toBe('accepted');
  });

  it('that was alone when it began, and is not any more, is proven nothing by the death of its worker', async () => {
    const { ledger, worker, run } = await openRun({}, 1, 1);
    for (let i = 0; i < 4; i++) {
      const attempt = await worker.begin({ run, group: 0, member: 0 }, 'rollout', ALONE);
      if ('refused' in attempt) throw new Error(attempt.refused);
      await worker.joined(attempt);
      await ledger.bury('worker-1', 'SIGSEGV', 3);
    }
    expect(await ledger.field('accepted')).toBe('0');
  });

  it('that waits to be alone is named with what it waits for, and is due at once when the worker dies that it waits in', async () => {
    const { ledger, worker, run, epoch, begin } = await openRun({}, 1, 1);
    await begin(0, 0);
    await ledger.bury('worker-1', 'SIGSEGV', 3);
    const [first] = (await ledger.due(epoch, { rollout: 1 }))?.members ?? [];
    expect(await worker.begin({ run, group: 0, member: 0 }, 'rollout')).toEqual({ refused: 'suspect' });
    expect((await readStatus(server.redis, run))?.waiting_for).toMatchObject([
      { member: '0-0', phase: expect.stringMatching(/waiting to be alone with a worker/) },
    ]);
    expect(await ledger.bury('worker-1', 'SIGSEGV', 3)).toBe(1);
    const [again] = (await ledger.due(epoch, { rollout: 1 }))?.members ?? [];
    // Its job of before is still somewhere: this one must not be taken for the same.
    expect(again).toMatchObject({ alone: true, next: (first?.next ?? 0) + 1 });
    // What it waited in was another's death: its own record has one.
    expect(await server.redis.hget(`${runKey(run)}:g:0`, '0.dn')).toBe('1');
  });

  it('whose stage came to its end is no suspect in the next one', async () => {
    const { ledger, worker, run, begin } = await openRun({}, 1, 1);
    await begin(0, 0);
    await ledger.bury('worker-1', 'SIGSEGV', 3);
    const attempt = await worker.begin({ run, group: 0, member: 0 }, 'rollout', ALONE);
    if ('refused' in attempt) throw new Error(attempt.refused);
    await worker.rolled(attempt, '{"x":1}', []);
    expect(await worker.begin({ run, group: 0, member: 0 }, 'verify')).toHaveProperty('token');
  });
});

describe('a group', () => {
  it('closes once, with all its members, in the step that accepts the last', async () => {
    const { ledger, worker, begin } = await openRun({}, 2);
    for (const [g, m] of [
      [1, 0],
      [1, 1],
      [0, 1],
      [0, 0],
    ] as const)
      await worker.accept(await begin(g, m), completedWith(m, g + m), []);
    const entries = await ledger.entries(1, 10);
    expect(entries.map((e) => [e.seq, e.closed.group, e.closed.closed_by])).toEqual([
      [1, 1, 'all'],
      [2, 0, 'all'],
    ]);
    expect(await server.redis.exists(`${runKey(ledger.run)}:g:0`)).toBe(0);
  });

  it('with at_least closes when enough are completed; the others have no result and answers that come later are evidence', async () => {
    const { ledger, worker, begin } = await openRun({ close: 'at_least', at_least: 2 }, 1, 4);
    const slow = await begin(0, 3);
    for (const m of [0, 2]) await worker.accept(await begin(0, m), completedWith(m, 1), []);
    expect(await worker.accept(slow, completedWith(3, 1), [])).toBe('closed');
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed.closed_by).toBe('at_least');
    expect(entry?.closed.members.map((m) => (m.status === 'completed' ? m.reward : m.cause))).toEqual([
      1,
      'group_closed',
      1,
      'group_closed',
    ]);
  });

  it('counts its deadline on the run’s own clock from the first begin, and a sleep of the farm adds at most two seconds', async () => {
    const { ledger, worker, begin, epoch, run } = await openRun({ deadline_ms: 5_000 });
    await worker.accept(await begin(0, 0), completedWith(0, 1), []);
    await server.redis.hset(`${runKey(run)}:run`, 'ticked', 1);
    expect(await ledger.tick(epoch)).toMatchObject({ closed: 0, clockMs: 2_000 });
    await server.redis.hset(`${runKey(run)}:run`, 'clock', 5_000);
    expect(await ledger.tick(epoch)).toMatchObject({ closed: 1 });
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed).toMatchObject({
      closed_by: 'deadline',
      members: [{ status: 'completed' }, { cause: 'group_deadline', attempts: 0 }],
    });
  });

  it('that never got a slot closes as not_started', async () => {
    const { ledger, epoch } = await openRun({ slot_wait_ms: 0 });
    await ledger.tick(epoch);
    const [entry] = await ledger.entries(1, 1);
    expect(entry?.closed.members).toMatchObject([{ cause: 'not_started' }, { cause: 'not_started' }]);
  });

  it('stands still while the run is paused, and nothing is begun', async () => {
    const { ledger, worker, run, epoch } = await openRun();
    await ledger.setState('paused', 'the engine does not answer');
    await server.redis.hset(`${runKey(run)}:run`, 'ticked', 1);
    expect(await ledger.tick(epoch)).toMatchObject({ state: 'paused', clockMs: 0 });
    expect(await worker.begin({ run, group: 0, member: 0 }, 'rollout')).toEqual({ refused: 'paused' });
    expect(await ledger.due(epoch, { rollout: 10, verify: 10 })).toEqual({ members: [], lost: [], lanes: null });
  });
});

describe('a run', () => {
  it('has one driver: another is told who, and an old epoch plans nothing', async () => {
    const { ledger, epoch } = await openRun();
    expect(await ledger.drive('other')).toMatchObject({ heldBy: 'driver' });
    const taken = await ledger.drive('other', 'driver');
    expect(taken).toHaveProperty('epoch');
    expect(await ledger.tick(epoch)).toBe('lost');
    expect(await ledger.due(epoch, { rollout: 10, verify: 10 })).toBeNull();
    expect(await ledger.openGroups(epoch, 1, [{ taskId: 'x', place: PLACE, lane: 'rollout' as const }])).toBe(-1);
  });

  it('that is cancelled closes what is open, and what was not accepted has no result', async () => {
    const { ledger, worker, begin } = await openRun({}, 3);
    const attempt = await begin(0, 0);
    await worker.accept(await begin(1, 1), completedWith(1, 1), []);
    await ledger.setState('cancelled');
    expect(await worker.accept(attempt, completedWith(0, 1), [])).toBe('accepted');
    expect(await ledger.closeOpen(100)).toBe(3);
    const entries = await ledger.entries(1, 3);
    expect(
      entries.flatMap((e) => e.closed.members).filter((m) => m.status === 'no_result' && m.cause === 'cancelled'),
    ).toHaveLength(4);
    expect(await ledger.setState('running')).toBe('cancelled');
  });

  it('fixes a shard’s boundaries first, commits it once and trims the stream to it', async () => {
    const { ledger, worker, begin } = await openRun({}, 3, 1);
    for (const g of [0, 1]) await worker.accept(await begin(g, 0), completedWith(0, g), []);
    expect(await ledger.fixShard({ most: 10, least: 5, final: false })).toBeNull();
    const fixed = await ledger.fixShard({ most: 10, least: 1, final: false });
    expect(fixed).toMatchObject({ number: 0, from: 1, to: 2 });
    await worker.accept(await begin(2, 0), completedWith(0, 2), []);
    expect(await ledger.fixShard({ most: 10, least: 1, final: true })).toEqual(fixed);
    expect(await ledger.commit({ number: 0, from: 1, to: 2, link: 'l1' })).toBe('committed');
    expect(await ledger.commit({ number: 0, from: 1, to: 2, link: 'l1' })).toBe('superseded');
    expect((await ledger.entries(1, 10)).map((e) => e.seq)).toEqual([3]);
    expect(await ledger.fixShard({ most: 10, least: 1, final: true })).toMatchObject({
      number: 1,
      from: 3,
      to: 3,
      link: 'l1',
    });
  });

  it('takes over committed shards into an empty ledger and does not open their groups again', async () => {
    const run = `ledger-${++runs}`;
    const ledger = new RunLedger(server.redis, run);
    await ledger.open({
      size: 1,
      groups: 3,
      close: 'all',
      at_least: 0,
      deadline_ms: 1e6,
      slot_wait_ms: 1e6,
      refill: 2,
      max_attempts: 3,
    });
    expect(
      await ledger.adopt([
        {
          to: 2,
          link: 'l',
          groups: [0, 2],
          refills: [],
          counts: { groups: 2, members: 2, completed: 2, no_result: 0, by_cause: {} },
        },
      ]),
    ).toBe(true);
    const driven = (await ledger.drive('d')) as { epoch: string };
    await ledger.openGroups(
      driven.epoch,
      0,
      [0, 1, 2].map((g) => ({ taskId: `t${g}`, place: PLACE, lane: 'rollout' as const })),
    );
    expect((await ledger.due(driven.epoch, { rollout: 10 }))?.members.map((d) => d.group)).toEqual([1]);
  });

  it('leaves under 4 KB in Redis for each live member', async () => {
    const before = Number(/used_memory:(\d+)/.exec(await server.redis.info('memory'))?.[1]);
    const { begin, worker } = await openRun({}, 64, 8);
    const blob = { sha256: 'd'.repeat(64), bytes: Buffer.alloc(1536, 7) };
    for (let g = 0; g < 64; g++)
      for (let m = 0; m < 7; m++) await worker.accept(await begin(g, m), completedWith(m, 1), [blob]);
    const after = Number(/used_memory:(\d+)/.exec(await server.redis.info('memory'))?.[1]);
    expect((after - before) / (64 * 8)).toBeLessThan(4096);
  });
});

describe('a full Redis', () => {
  it('still takes outcomes and closes groups, and refuses to open new ones', async () => {
    const small = await startRedis();
    try {
      const ledger = new RunLedger(small.redis, 'full');
      await ledger.open({
        size: 1,
        groups: 3,
        close: 'all',
        at_least: 0,
        deadline_ms: 1e6,
        slot_wait_ms: 1e6,
        refill: 2,
        max_attempts: 3,
      });
      const { epoch } = (await ledger.drive('d')) as { epoch: string };
      await ledger.openGroups(epoch, 0, [{ taskId: 't0', place: PLACE, lane: 'rollout' as const }]);
      const worker = new MemberLedger(small.redis, 'w');
      const attempt = await worker.begin({ run: 'full', group: 0, member: 0 }, 'rollout');
      if ('refused' in attempt) throw new Error(attempt.refused);
      await small.redis.config('SET', 'maxmemory', '1');
      await expect(small.redis.set('x', 'y')).rejects.toThrow(/OOM/);
      await expect(
        ledger.openGroups(epoch, 1, [{ taskId: 't1', place: PLACE, lane: 'rollout' as const }]),
      ).rejects.toThrow(/OOM/);
      expect(await worker.beat('full', [{ ...attempt, phase: 'run' }])).toEqual(['ok']);
      expect(await worker.accept(attempt, completedWith(0, 1), [])).toBe('accepted');
      expect(await ledger.entries(1, 1)).toHaveLength(1);
      expect(await ledger.fixShard({ most: 10, least: 1, final: true })).toMatchObject({ from: 1 });
      expect(await ledger.commit({ number: 0, from: 1, to: 1, link: 'l' })).toBe('committed');
    } finally {
      await small.close();
    }
  });
});
