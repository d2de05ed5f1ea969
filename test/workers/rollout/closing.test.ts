import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { Closings } from '../../../src/workers/rollout/closing.ts';
import { until } from '../../support/until.ts';

function closingsOf(most: number, times = { slotMs: 30, givenUpMs: 10_000 }) {
  const lines: string[] = [];
  let guests = 0;
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const guest = async () => {
    guests++;
    return () => {
      guests--;
    };
  };
  const closings = new Closings(most, log, guest, times);
  const ends: (() => void)[] = [];
  const hung = (): Promise<void> => new Promise((resolve) => ends.push(resolve));
  return { closings, lines, hung, ends, guests: () => guests };
}

describe('a slot', () => {
  it('goes on when its box is closed, or could not be', async () => {
    const { closings, lines } = closingsOf(1);
    await closings.keep('a', Promise.resolve());
    await closings.keep('b', Promise.reject(new Error('no such container')));
    expect([closings.unclosed, lines]).toEqual([0, []]);
  });

  it('goes on without a box that does not close in time: it is named, and counts as at work here until it is gone', async () => {
    const { closings, lines, hung, ends, guests } = closingsOf(2);
    await closings.keep('run 3-1', hung());
    expect([closings.unclosed, guests()]).toEqual([1, 1]);
    expect(lines.join()).toMatch(/run 3-1.*waiting for the Docker engine: a box does not close/);
    ends[0]?.();
    await until('it is gone', () => guests() === 0);
    expect(closings.unclosed).toBe(0);
  });

  it('waits where as many are left behind already as the worker has slots', async () => {
    const { closings, hung, ends } = closingsOf(2);
    await closings.keep('a', hung());
    await closings.keep('b', hung());
    let on = false;
    const third = closings.keep('c', hung()).then(() => {
      on = true;
    });
    await until('it is left behind as well', () => closings.unclosed === 3);
    await closings.keep('d', Promise.resolve());
    expect(on).toBe(false);
    ends[1]?.();
    await third;
    expect(closings.unclosed).toBe(2);
    for (const end of ends) end();
  });

  it('leaves what is never closed to the sweeper', async () => {
    const { closings, hung } = closingsOf(1, { slotMs: 10, givenUpMs: 60 });
    await Promise.all([closings.keep('a', hung()), closings.keep('b', hung())]);
    await until('none is counted any more', () => closings.unclosed === 0);
  });

  it('waits for no more than its time when the process goes away', async () => {
    const { closings, hung } = closingsOf(1);
    void closings.keep('a', hung());
    await closings.settled();
    expect(closings.unclosed).toBe(1);
  });
});
