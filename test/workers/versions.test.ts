// No run is graded by two versions: whichever worker is first fixes image and grader, and others leave its members alone.

import { describe, expect, it, type TestContext } from 'vitest';
import { runKey } from '../../src/shared/ledger/script.ts';
import { fixVersions } from '../../src/shared/ledger/versions.ts';
import { announce } from '../../src/shared/presence.ts';
import type { SandboxDriver } from '../../src/shared/sandbox.ts';
import { startRolloutWorker } from '../../src/workers/rollout/worker.ts';
import { type DrivenRun, FarmParts } from '../support/farm-parts.ts';
import { GatedSandbox } from '../support/gated-sandbox.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const BOXED = {
  group_size: 2,
  tasks: Array.from({ length: 3 }, (_, i) => ({
    id: `t${i}`,
    env: 'command',
    config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 },
  })),
  policy: { kind: 'scripted', actions: [['echo', 'hello']] },
  max_steps: 1,
};

async function start({ onTestFinished }: TestContext): Promise<FarmParts> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  return farm;
}

/** A worker whose engine has that image and whose checkout has that grader; `begun` counts the boxes that it opened. */
async function worker(farm: FarmParts, run: string, imageId: string, runnerHash: string | null) {
  const sandbox = new GatedSandbox();
  sandbox.release();
  const opening = sandbox.open;
  const seen = { begun: 0, worker: '', stop: async (): Promise<void> => {} };
  const driver: SandboxDriver = Object.assign(Object.create(sandbox) as SandboxDriver, {
    kind: sandbox.kind,
    prepare: async () => ({ imageId, runnerHash }),
    engine: sandbox.engine,
    sweep: sandbox.sweep,
    answers: sandbox.answers,
    close: sandbox.close,
    open: (...args: Parameters<SandboxDriver['open']>) => {
      seen.begun++;
      return opening(...args);
    },
  });
  const seat = farm.seat('rollout', run, 2);
  const role = await startRolloutWorker(seat, driver, async () => new Set([seat.worker]));
  let over = false;
  seen.worker = seat.worker;
  seen.stop = async () => {
    if (over) return;
    over = true;
    await role.stop();
  };
  farm.onClose(seen.stop);
  return seen;
}

const closed = (run: DrivenRun, groups: number): Promise<unknown> =>
  until('the groups are closed', async () => (await run.status()).groups.closed === groups, { withinMs: 150_000 });

// A run that rests is tried again after rests that grow, and a member that was dropped meanwhile is queued again after ten seconds.
describe('versions', { timeout: 240_000 }, () => {
  it('are fixed by the first, for good, and for a run that is there only', async (context) => {
    const farm = await start(context);
    const run = await farm.drive(BOXED);
    const { redis } = farm.server;
    const [one, two] = [
      { image: 'sha256:1', grader: 'a' },
      { image: 'sha256:2', grader: 'a' },
    ] as const;
    expect(await fixVersions(redis, run.run, one)).toEqual(one);
    expect(await fixVersions(redis, run.run, two)).toEqual(one);
    expect(await fixVersions(redis, 'nobody', two)).toEqual(two);
    expect(await redis.exists(`${runKey('nobody')}:run`)).toBe(0);
  });

  it('of a worker that has others keep it off, while one that has them does the run', async (context) => {
    const farm = await start(context);
    const run = await farm.drive(BOXED);
    await fixVersions(farm.server.redis, run.run, { image: 'sha256:old', grader: 'g' });
    const other = await worker(farm, run.run, 'sha256:new', 'g');
    await until('the new one has left a member alone', () =>
      farm.lines.some((line) => line.msg === 'members left alone'),
    );
    const right = await worker(farm, run.run, 'sha256:old', 'g');
    await closed(run, 3);
    expect(other.begun).toBe(0);
    expect(right.begun).toBe(6);
    expect((await run.status()).members).toMatchObject({ completed: 6, no_result: 0 });
  });

  it.each([
    ['image', 'sha256:new', 'old'],
    ['grader', 'sha256:old', 'new'],
  ])('let a run rest that no worker has the %s of, and say so, until one comes', async (what, image, grader) => {
    const farm = await FarmParts.start();
    try {
      const run = await farm.drive(BOXED);
      await fixVersions(farm.server.redis, run.run, { image: 'sha256:old', grader: 'old' });
      const wrong = await worker(farm, run.run, image, grader);
      const said = await until('the run rests', async () => {
        const status = await run.status();
        return status.state === 'paused' && status.reason;
      });
      expect(said).toContain('no worker here may grade this run: it was begun with the');
      expect(said).toContain(what);
      expect((await run.status()).members).toMatchObject({ accepted: 0, no_result: 0 });
      await worker(farm, run.run, 'sha256:old', 'old');
      await closed(run, 3);
      expect(wrong.begun).toBe(0);
      expect((await run.status()).members).toMatchObject({ completed: 6, no_result: 0 });
    } finally {
      await farm.close();
    }
  });

  it('do not keep a run resting while somebody is there who may yet do it', async (context) => {
    const farm = await start(context);
    const run = await farm.drive(BOXED);
    await fixVersions(farm.server.redis, run.run, { image: 'sha256:old', grader: 'g' });
    const seat = { role: 'rollout' as const, realm: run.run, worker: 'elsewhere', slots: { rollout: 0 } };
    const presence = await announce(farm.server.redis, seat);
    farm.onClose(() => presence.stop());
    await worker(farm, run.run, 'sha256:new', 'g');
    await until('the new one has left a member alone', () =>
      farm.lines.some((line) => line.msg === 'members left alone'),
    );
    expect((await run.status()).state).toBe('running');
  });

  it('are nobody’s business where nothing is boxed', async (context) => {
    const farm = await start(context);
    const run = await farm.drive({
      ...BOXED,
      tasks: guessTasks(3),
      policy: { kind: 'scripted', actions: [1, 2, 3, 4] },
      max_steps: 4,
    });
    await fixVersions(farm.server.redis, run.run, { image: 'sha256:old', grader: 'old' });
    await worker(farm, run.run, 'sha256:new', 'new');
    await closed(run, 3);
  });
});
