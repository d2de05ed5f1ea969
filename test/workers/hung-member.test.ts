// A batch of 256 of which one member hangs: the group closes at its deadline with the others, and the one that hung is named.

import { describe, expect, it } from 'vitest';
import { groupRecordSchema } from '../../src/shared/group.ts';
import { BEAT_MS, MemberLedger } from '../../src/shared/ledger/member-ledger.ts';
import { runKey } from '../../src/shared/ledger/script.ts';
import { type ResultLine, resultsFromStore } from '../../src/shared/store/results.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const [SIZE, HUNG, DEADLINE_S] = [256, 97, 600];

describe('a batch of 256', () => {
  it('with one member that hangs closes at its deadline, with 255', { timeout: 150_000 }, async ({
    onTestFinished,
  }) => {
    const farm = await FarmParts.start();
    onTestFinished(() => farm.close());
    const run = await farm.drive({
      group_size: SIZE,
      tasks: guessTasks(1),
      policy: { kind: 'scripted', actions: [4] },
      groups: { close: 'all', deadline_s: DEADLINE_S },
    });
    // A worker that is well, and whose episode never comes to an end.
    const hung = new MemberLedger(farm.server.redis, 'rollout-hung');
    const member = { run: run.run, group: 0, member: HUNG };
    const attempt = await until('the member is begun', async () => {
      const begun = await hung.begin(member, 'rollout');
      return 'refused' in begun ? null : begun;
    });
    const standing: string[] = [];
    const beat = async (): Promise<void> => {
      const { group, token } = attempt;
      const [said] = await hung.beat(run.run, [{ group, member: HUNG, token, phase: 'playing' }]);
      standing.push(said as string);
    };
    // The others may all be over before the second.
    await beat();
    const heart = setInterval(() => void beat().catch(() => {}), BEAT_MS / 4);
    onTestFinished(() => clearInterval(heart));
    const seat = farm.seat('rollout', run.run);
    const worker = await startRolloutWorker(seat, new GatedSandbox(), async () => new Set([seat.worker]));
    farm.onClose(() => worker.stop());
    const collect = await startCollectWorker(farm.seat('collect', run.run), run.run);
    farm.onClose(() => collect.stop());
    const others = async () => {
      const status = await run.status();
      return status.members.accepted === SIZE - 1 && status;
    };
    const last = await until('the others are accepted', others, { withinMs: 60_000 });
    // Nothing else is waited for, and it is said for how long yet.
    expect(last.waiting_for.map((w) => w.member)).toEqual([`0-${HUNG}`]);
    expect(last.waiting_for[0]).toMatchObject({ phase: 'playing' });
    expect(last.waiting_for[0]?.deadline_s).toBeGreaterThan(0);
    await until('it was well for a while', () => standing.length >= 8);
    expect((await run.status()).groups.closed).toBe(0);
    // The rest of its time passes, but for two seconds.
    const clock = Number(await run.ledger.field('clock'));
    const deadlines = `${runKey(run.run)}:deadlines`;
    expect(Number(await farm.server.redis.zscore(deadlines, '0'))).toBeGreaterThan(clock);
    await farm.server.redis.zadd(deadlines, clock + 2_000, '0');
    await until('the group closes', async () => (await run.status()).groups.closed === 1);
    expect(Number(await run.ledger.field('clock'))).toBeGreaterThanOrEqual(clock + 2_000);
    await until('the one that hung is told to end', () => standing.at(-1) === 'closed');
    expect(standing.slice(0, 8)).toEqual(Array(8).fill('ok'));
    expect(await run.end).toEqual({ state: 'done' });
    const { value } = await resultsFromStore(farm.store, run.run, 0).next();
    const { closed_by, members } = groupRecordSchema.parse(JSON.parse((value as ResultLine).line));
    expect(closed_by).toBe('deadline');
    expect(members.filter((m) => m.status === 'completed')).toHaveLength(SIZE - 1);
    expect(members[HUNG]).toMatchObject({ member: HUNG, status: 'no_result', cause: 'group_deadline', attempts: 1 });
  });
});
