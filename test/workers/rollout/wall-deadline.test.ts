// An episode's deadline on the wall: over the wait for a box, its steps and its end, whatever of it hangs.

import { describe, expect, it } from 'vitest';
import { MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import type { Box, SandboxDriver } from '../../../src/shared/sandbox.ts';
import { Attempts } from '../../../src/workers/attempts.ts';
import { type PlayContext, type Played, playMember } from '../../../src/workers/rollout/play.ts';
import { createSubprocessDriver } from '../../../src/workers/rollout/sandbox/subprocess.ts';
import { ended, episodeMs, WallDeadline, withinWall } from '../../../src/workers/rollout/wall-deadline.ts';
import { Runs } from '../../../src/workers/runs.ts';
import { FarmParts } from '../../support/farm-parts.ts';
import { until } from '../../support/until.ts';

const never = new AbortController().signal;
const forEver = <T>(): Promise<T> => new Promise<T>(() => {});

describe('a wall deadline', () => {
  it('gives what was done in time, and throws what was thrown', async () => {
    expect(await withinWall(30_000, never, async () => 7)).toBe(7);
    await expect(withinWall(30_000, never, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  });

  it('ends what heeds the signal, and leaves what does not', async () => {
    const heeds = (signal: AbortSignal) =>
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    await expect(withinWall(30, never, heeds)).rejects.toBeInstanceOf(WallDeadline);
    await expect(withinWall(30, never, () => forEver(), 30)).rejects.toBeInstanceOf(WallDeadline);
  });

  it('passes on why it was told to end before', async () => {
    const control = new AbortController();
    const work = withinWall(10_000, control.signal, () => forEver(), 10);
    control.abort(new Error('stopped'));
    await expect(work).rejects.toThrow('stopped');
  });

  it('does not wait for an end that does not come', async () => {
    await ended(forEver(), 20);
  });

  it('is the sum of what the parts may take, and less than the life of a box', () => {
    const settings = (maxSteps: number, timeoutS: number) =>
      ({ maxSteps, sandbox: { timeoutS } }) as Parameters<typeof episodeMs>[0];
    expect(episodeMs(settings(2, 10))).toBe(180_000 + 2 * 40_000);
    expect(episodeMs(settings(1_000_000, 86_400))).toBe(100 * 60_000);
  });
});

describe('an episode that hangs', () => {
  /** One member, played by `driver`; it may take `wallMs`. */
  async function play(
    driver: SandboxDriver,
    wallMs = 300,
  ): Promise<{ played: Played; ms: number; closing: Promise<void>[] }> {
    const farm = await FarmParts.start();
    const task = { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 };
    const run = await farm.drive({
      group_size: 1,
      tasks: [{ id: 's', env: 'command', config: task }],
      policy: { kind: 'scripted', actions: [['echo', 'hello']] },
    });
    const { redis } = farm.server;
    const ledger = new MemberLedger(redis, 'here');
    const attempt = await until('the member is there', async () => {
      const begun = await ledger.begin({ run: run.run, group: 0, member: 0 }, 'rollout');
      return 'refused' in begun ? null : begun;
    });
    const known = await new Runs(redis, farm.config, farm.seat('rollout', run.run).log).get(run.run);
    if ('refused' in known) throw new Error(known.refused);
    const attempts = new Attempts(ledger);
    const running = attempts.start(attempt, 'rollout', 'reading the task');
    const began = performance.now();
    try {
      const closing: Promise<void>[] = [];
      const context: PlayContext = {
        driver,
        farmId: 'test-farm',
        worker: 'here',
        running,
        closing: (closed) => void closing.push(closed),
        wallMs,
        endMs: 300,
      };
      const played = await playMember(attempt, known, context);
      return { played, ms: performance.now() - began, closing };
    } finally {
      attempts.end(running);
      attempts.close();
      await driver.close();
      await farm.close();
    }
  }

  /** Boxes of which one part hangs. */
  function hanging(part: 'open' | 'write' | 'run' | 'close'): SandboxDriver {
    const driver = createSubprocessDriver();
    const open = driver.open.bind(driver);
    driver.open = async (limits, labels, signal) => {
      if (part === 'open') return await forEver<Box>();
      const box = await open(limits, labels, signal);
      if (part === 'close') {
        const close = box.close.bind(box);
        box.close = () => close().then(() => forEver<void>());
      } else if (part === 'write') box.write = () => forEver();
      else box.run = () => forEver();
      return box;
    };
    driver.close = async () => {};
    return driver;
  }

  it.each([
    ['open', 'waiting for a box'],
    ['write', 'playing'],
    ['run', 'playing'],
  ] as const)('in %s has no result, and says where it was', async (part, phase) => {
    // Whoever hangs later has had its box by then.
    const { played, ms } = await play(hanging(part), part === 'open' ? 300 : 2_500);
    expect(played).toMatchObject({ status: 'no_result', cause: 'environment_silent' });
    expect(played.status === 'no_result' && played.detail).toContain(phase);
    expect(ms).toBeLessThan(25_000);
  });

  it('in the end of its box has its result at once: whoever keeps the slot waits for the box', async () => {
    const { played, ms, closing } = await play(hanging('close'), 60_000);
    expect(played).toMatchObject({ status: 'completed', record: { reward: 1 } });
    expect(closing).toHaveLength(1);
    expect(ms).toBeLessThan(25_000);
  });
});
