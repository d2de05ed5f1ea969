// The pool: when boxes are made ahead and when not, who gets which, what a failed start means, and what is left at the end.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Box, SandboxDriver, SandboxLimits } from '../../../../src/shared/sandbox.ts';
import { Demand } from '../../../../src/workers/rollout/sandbox/demand.ts';
import { localGate } from '../../../../src/workers/rollout/sandbox/gates.ts';
import { createPool, POOL_BOUNDS } from '../../../../src/workers/rollout/sandbox/pool.ts';
import type { ShelfBounds } from '../../../../src/workers/rollout/sandbox/shelf.ts';
import { ScriptedSandbox } from '../../../support/scripted-sandbox.ts';
import { until } from '../../../support/until.ts';
import { bytes, LABELS, LIMITS, run } from '../../sandbox-contract.ts';

describe('a pool', () => {
  let driver: ScriptedSandbox;
  let pool: SandboxDriver;
  const make = (bounds: Partial<ShelfBounds> = {}) => {
    pool = createPool(driver, () => localGate(driver), bounds);
  };
  const open = (over: Partial<SandboxLimits> = {}, signal = new AbortController().signal) =>
    pool.open({ ...LIMITS, ...over }, LABELS, signal);
  /** Until as many were asked for, one after the other, that some are made ahead. */
  const someReady = (also: () => boolean = () => true) =>
    until(
      'some stand ready',
      async () => {
        await (await open()).close();
        return driver.boxes.size > 0 && also();
      },
      { everyMs: 0 },
    );
  const closeAll = (boxes: Box[]) => Promise.all(boxes.map((box) => box.close()));

  beforeEach(() => {
    driver = new ScriptedSandbox();
    make();
  });
  afterEach(async () => {
    await pool.close();
    expect(driver.boxes.size).toBe(0);
    expect(driver.starting).toBe(0);
  });

  describe('making boxes ahead', () => {
    test('makes none for an episode that comes alone', async () => {
      await (await open()).close();
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect([driver.opened, driver.boxes.size]).toEqual([1, 0]);
    });

    test('makes them where many are asked for, gives them at once, and goes back to none when nobody asks', async () => {
      make({ demandMs: 600 });
      driver.startMs = 60;
      await someReady(() => driver.starting === 0);
      expect(driver.boxes.size).toBeLessThanOrEqual(8);
      // No start comes to its end meanwhile: what is given stood ready.
      driver.script.push(...Array.from({ length: 64 }, () => 'hang' as const));
      await (await open()).close();
      driver.script.length = 0;
      driver.release();
      await until('nothing stands ready', () => driver.boxes.size === 0);
    });

    test('bridges a pause of seconds, and has forgotten a rush within a minute', () => {
      const demand = new Demand(POOL_BOUNDS.ahead, POOL_BOUNDS.demandMs);
      for (let now = 0; now < 4_000; now += 100) demand.took(now);
      expect(demand.target(4_000)).toBe(4);
      expect(demand.target(14_000)).toBe(1);
      expect(demand.target(64_000)).toBe(0);
    });

    test('never gives a box that has died meanwhile', async () => {
      driver.startMs = 30;
      await someReady();
      for (const box of driver.boxes) await box.close();
      const box = await open();
      expect(await run(box, ['true'])).toMatchObject({ cause: 'exit', exitCode: 0 });
      await box.close();
    });

    test('keeps images and limits apart', async () => {
      const boxes = await Promise.all([open(), open({ memoryMb: 512 }), open({ image: 'other' })]);
      expect(driver.opened).toBe(3);
      await closeAll(boxes);
    });
  });

  describe('starting', () => {
    test('no more start at once than the engine bears, however many are asked for', async () => {
      driver.startMs = 30;
      const boxes = await Promise.all(Array.from({ length: 12 }, () => open()));
      expect(driver.mostStarting).toBe(4);
      await closeAll(boxes);
    });

    test('all boxes together take no more memory than there is: who comes then waits for one to end', async () => {
      driver.memoryMb = 1_000;
      const boxes = await Promise.all([open(), open(), open()]);
      let had: Box | null = null;
      const fourth = open().then((box) => {
        had = box;
        return box;
      });
      await new Promise((resolve) => setTimeout(resolve, 150));
      expect(had).toBeNull();
      await boxes[0]?.close();
      await closeAll([...boxes, await fourth]);
    });

    test('memory of boxes that stand ready is given up for one that is wanted', async () => {
      driver.memoryMb = 1_300;
      driver.startMs = 40;
      await someReady();
      const large = await open({ memoryMb: 900 });
      await large.close();
    });

    test('a box that can never fit is refused at once, by name', async () => {
      await expect(open({ memoryMb: 100_000 })).rejects.toMatchObject({
        phase: 'start',
        blame: 'engine',
        signature: 'start:memory',
      });
    });

    test('a failed start is no episode’s failure as long as another succeeds', async () => {
      driver.script.push('fail', 'fail', 'fail');
      await closeAll(await Promise.all([open(), open()]));
      make({ ahead: 0 });
      driver.script.push('hang', 'fail');
      const both = [open(), open()];
      await Promise.race(both);
      driver.release();
      await closeAll(await Promise.all(both));
    });

    test('a start that hangs keeps nobody else waiting', async () => {
      driver.script.push('hang');
      const first = open();
      const second = await open();
      driver.release();
      await closeAll([second, await first]);
    });

    test('the same failure again and again is told, and the next who asks finds the engine mended', async () => {
      driver.script.push('fail', 'fail', 'fail', 'fail');
      await expect(open()).rejects.toMatchObject({ phase: 'start', signature: 'start:scripted' });
      await (await open()).close();
    });

    test('the wait for a box has an end, with a name', async () => {
      make({ waitMs: 150 });
      driver.script.push('hang');
      await expect(open()).rejects.toMatchObject({ phase: 'start', signature: 'start:wait' });
      driver.release();
    });

    test('who is told to end waits no longer, and its box goes to the next', async () => {
      driver.script.push('hang');
      const control = new AbortController();
      const given = open({}, control.signal);
      await until('it starts', () => driver.starting === 1);
      control.abort(new Error('not wanted'));
      await expect(given).rejects.toThrow('not wanted');
      const next = open();
      driver.release();
      await (await next).close();
      await until('nothing stands ready', () => driver.boxes.size === 0);
    });
  });

  describe('closing', () => {
    test('takes along what is lent, what stands ready, what starts, and who waits', async () => {
      driver.startMs = 30;
      await someReady();
      const lent = await open();
      const running = expect(run(lent, ['sleep', '60'])).rejects.toMatchObject({ name: 'BoxLost' });
      driver.script.push('hang');
      const waiting = expect(open({ memoryMb: 300 })).rejects.toMatchObject({ phase: 'start' });
      await until('it starts', () => driver.starting > 0);
      await pool.close();
      await Promise.all([running, waiting]);
      await expect(open()).rejects.toMatchObject({ phase: 'start' });
    });
  });

  describe('recycling', () => {
    beforeEach(() => make({ ahead: 0 }));
    const shared = (name = 'run/1') => open({ recycle: name });

    test('hands a box on within its run, emptied, and only there', async () => {
      const first = await shared();
      await first.write(bytes({ left: 'x' }));
      await first.close();
      const second = await shared();
      expect(driver.opened).toBe(1);
      expect((await second.read({ maxBytes: 100, maxEntries: 10 })).files.size).toBe(0);
      const other = await shared('run/2');
      expect(driver.opened).toBe(2);
      const fresh = await open();
      expect(driver.opened).toBe(3);
      await closeAll([second, other, fresh]);
    });

    test('never hands a fresh run’s box on', async () => {
      await (await open()).close();
      await (await shared()).close();
      expect(driver.opened).toBe(2);
    });

    test('keeps what agents and what judges had apart', async () => {
      await (await shared()).close();
      const judge = await pool.open(
        { ...LIMITS, recycle: 'run/1' },
        { ...LABELS, use: 'judge' },
        new AbortController().signal,
      );
      expect(driver.opened).toBe(2);
      await judge.close();
    });

    test('gives a returned box to the episode that waits for one of its run', async () => {
      driver.memoryMb = 400;
      const first = await shared();
      const second = shared();
      await first.close();
      await (await second).close();
      expect(driver.opened).toBe(1);
    });

    test('gives up one run’s idle box for another run that has no memory to start in', async () => {
      driver.memoryMb = 400;
      await (await shared()).close();
      const other = await shared('run/2');
      expect([driver.opened, driver.boxes.size]).toEqual([2, 1]);
      await other.close();
    });

    test('gives up a box after an escape, a command that was cut off, a lost answer, or one still at work', async () => {
      const spoil: ((box: Box) => Promise<unknown>)[] = [
        (box) => box.write(bytes({ '../x': '1' })),
        (box) => run(box, ['sleep', '60'], { signal: AbortSignal.timeout(50) }).catch(() => {}),
        async (box) => {
          run(box, ['sleep', '60']).catch(() => {});
        },
        async () => {
          for (const box of driver.boxes) await box.close();
        },
      ];
      for (const [i, doIt] of spoil.entries()) {
        const box = await shared();
        expect(driver.opened).toBe(i + 1);
        await doIt(box);
        await box.close();
      }
    });

    test('gives up a box whose reset does not prove it clean, or takes too long', async () => {
      make({ ahead: 0, resetMs: 50 });
      const first = await shared();
      for (const box of driver.boxes) box.reset = () => Promise.reject(new Error('1 left in process'));
      await first.close();
      const second = await shared();
      expect(driver.opened).toBe(2);
      for (const box of driver.boxes) box.reset = () => new Promise(() => {});
      await second.close();
      await (await shared()).close();
      expect(driver.opened).toBe(3);
    });

    test('bounds a box’s life by episodes and by age, and its idle time', async () => {
      make({ ahead: 0, episodes: 3 });
      for (let turn = 0; turn < 6; turn += 1) await (await shared()).close();
      expect(driver.opened).toBe(2);
      await pool.close();
      make({ ahead: 0, idleMs: 200 });
      await (await shared()).close();
      await until('the idle one is gone', () => driver.boxes.size === 0);
      await pool.close();
      make({ ahead: 0, recycledAgeMs: 0 });
      await (await shared()).close();
      expect(driver.boxes.size).toBe(0);
    });

    test('does not reset again what was proven clean and not used since', async () => {
      let resets = 0;
      await (await shared()).close();
      for (const box of driver.boxes) {
        const reset = box.reset.bind(box);
        box.reset = () => {
          resets += 1;
          return reset();
        };
      }
      const again = await shared();
      await again.reset();
      expect(resets).toBe(0);
      await run(again, ['true']);
      await again.reset();
      expect(resets).toBe(1);
      await again.close();
    });
  });
});
