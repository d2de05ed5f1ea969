// A batch of 256 of which one member hangs: the group closes at its deadline with the others, and the one that hung is named.

import { describe, expect, it } from 'vitest';
import { groupRecordSchema } from '../../src/shared/group.ts';
import { type ResultLine, resultsFromStore } from '../../src/shared/store/results.ts';
import { startCollectWorker } from '../../src/workers/collect/worker.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { until } from '../support/until.ts';

const [SIZE, HUNG, DEADLINE_S, SLOTS] = [256, 97, 15, 16];

describe('a batch of 256', () => {
  it('with one member that hangs closes within a second of its deadline, with 255', { timeout: 60_000 }, async ({
    onTestFinished,
  }) => {
    const farm = await FarmParts.start();
    onTestFinished(() => farm.close());
    const sandbox = new GatedSandbox();
    sandbox.release();
    const open = sandbox.open.bind(sandbox);
    let ended = false;
    sandbox.open = async (limits, labels, signal) => {
      if (labels.member !== `0-${HUNG}`) return open(limits, labels, signal);
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          ended = true;
          reject(signal.reason as Error);
        });
      });
    };
    const run = await farm.drive({
      group_size: SIZE,
      tasks: [{ id: 's', env: 'command', config: { files: {}, task: 'x', expected_stdout: 'hello', timeout: 60 } }],
      policy: { kind: 'scripted', actions: [['echo', 'hello']] },
      groups: { close: 'all', deadline_s: DEADLINE_S },
      sandbox: { timeout_s: 60 },
    });
    const seat = farm.seat('rollout', run.run, SLOTS);
    const worker = await startRolloutWorker(seat, sandbox, async () => new Set([seat.worker]));
    farm.onClose(() => worker.stop());
    const collect = await startCollectWorker(farm.seat('collect', run.run), run.run);
    farm.onClose(() => collect.stop());
    await until('a member is begun', async () => (await run.status()).members.in_flight > 0, { everyMs: 5 });
    const began = performance.now();
    const last = await until(
      'the others are accepted',
      async () => {
        const status = await run.status();
        return status.members.accepted === SIZE - 1 && status;
      },
      { withinMs: DEADLINE_S * 1000 },
    );
    // Nothing else is waited for, and it is said for how long yet.
    expect(last.waiting_for.map((w) => w.member)).toEqual([`0-${HUNG}`]);
    expect(last.waiting_for[0]).toMatchObject({ phase: 'waiting for a box' });
    expect(last.waiting_for[0]?.deadline_s).toBeGreaterThan(0);
    await until('the group closes', async () => (await run.status()).groups.closed === 1, { withinMs: 30_000 });
    const seconds = (performance.now() - began) / 1000;
    expect(seconds).toBeGreaterThan(DEADLINE_S - 1);
    expect(seconds).toBeLessThan(DEADLINE_S + 1);
    expect(await run.end).toEqual({ state: 'done' });
    const { value } = await resultsFromStore(farm.store, run.run, 0).next();
    const { closed_by, members } = groupRecordSchema.parse(JSON.parse((value as ResultLine).line));
    expect(closed_by).toBe('deadline');
    expect(members.filter((m) => m.status === 'completed')).toHaveLength(SIZE - 1);
    expect(members[HUNG]).toMatchObject({ member: HUNG, status: 'no_result', cause: 'group_deadline' });
    await until('the one that hung is told to end', () => ended);
  });
});
