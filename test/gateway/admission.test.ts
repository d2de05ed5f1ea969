import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Admission } from '../../src/gateway/admission.ts';
import { Joins } from '../../src/gateway/joins.ts';

const never = new AbortController().signal;

describe('what may be inside', () => {
  test('is refused beyond the capacity, and there is room again when it leaves', () => {
    const room = new Admission(10);
    expect([room.tryTake(6), room.tryTake(5), room.tryTake(4), room.inside]).toEqual([true, false, true, 10]);
    room.give(6);
    expect(room.tryTake(5)).toBe(true);
  });

  test('more than all of it goes in alone', () => {
    const room = new Admission(10);
    expect([room.tryTake(99), room.tryTake(1)]).toEqual([true, false]);
    room.give(99);
    expect([room.tryTake(1), room.tryTake(99)]).toEqual([true, false]);
  });

  test('those who wait go in in their order, a large one is not overtaken for ever, and one that leaves lets others by', async () => {
    const room = new Admission(10);
    const order: string[] = [];
    const leaving = new AbortController();
    room.tryTake(8);
    const large = room.take(9, never).then(() => order.push('large'));
    const impatient = room.take(1, leaving.signal).catch(() => order.push('left'));
    const small = room.take(1, never).then(() => order.push('small'));
    expect([room.tryTake(1), room.waiting]).toEqual([false, 3]);
    leaving.abort(new Error('gone'));
    await impatient;
    room.give(8);
    await Promise.all([large, small]);
    expect([order, room.inside, room.waiting]).toEqual([['left', 'large', 'small'], 10, 0]);
    await expect(room.take(1, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
  });
});

describe('repeated requests', () => {
  // Time passes when the test says so.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
  });
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  const options = { keepMs: 50, keepCount: 3, keepBytes: 800, lingerMs: 0 };
  const joins = (more = {}) => new Joins<string>({ ...options, ...more }, (text) => text.length);

  test('share one piece of work, and its answer for a while', async () => {
    const table = joins();
    const work = vi.fn(async () => 'answer');
    const both = await Promise.all([table.join('k', 'c', never, work), table.join('k', 'c', never, work)]);
    expect(both).toEqual([
      { value: 'answer', repeated: false },
      { value: 'answer', repeated: true },
    ]);
    expect(await table.join('k', 'c', never, work)).toEqual({ value: 'answer', repeated: true });
    expect(await table.join('k', 'other', never, work)).toBeNull();
    await vi.advanceTimersByTimeAsync(49);
    expect((await table.join('k', 'c', never, work))?.repeated).toBe(true);
    await vi.advanceTimersByTimeAsync(1);
    expect(await table.join('k', 'c', never, work)).toEqual({ value: 'answer', repeated: false });
    expect(work).toHaveBeenCalledTimes(2);
  });

  test('keep no more than they may, the oldest go first, and no failure', async () => {
    const table = joins({ keepMs: 60_000 });
    for (const key of ['a', 'b', 'c', 'd']) await table.join(key, '', never, async () => key);
    expect(table.size).toBe(3);
    expect((await table.join('d', '', never, async () => 'again'))?.value).toBe('d');
    expect((await table.join('a', '', never, async () => 'again'))?.value).toBe('again');
    await table.join('big', '', never, async () => 'x'.repeat(101));
    expect((await table.join('big', '', never, async () => 'again'))?.value).toBe('again');
    await expect(table.join('bad', '', never, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect((await table.join('bad', '', never, async () => 'fine'))?.value).toBe('fine');
  });

  test('are cancelled when the last caller has gone, unless one comes back in time', async () => {
    const table = joins({ lingerMs: 40 });
    let answer: (text: string) => void = () => {};
    let cancelled = false;
    const work = (signal: AbortSignal) =>
      new Promise<string>((resolve, reject) => {
        answer = resolve;
        signal.addEventListener('abort', () => {
          cancelled = true;
          reject(new Error('cancelled'));
        });
      });
    const leave = async (key: string): Promise<void> => {
      const caller = new AbortController();
      const joined = table.join(key, '', caller.signal, work);
      caller.abort(new Error('gone'));
      await expect(joined).rejects.toThrow('gone');
    };
    await leave('k');
    await vi.advanceTimersByTimeAsync(39);
    const back = table.join('k', '', never, work);
    await vi.advanceTimersByTimeAsync(1_000);
    answer('answer');
    expect([(await back)?.value, cancelled]).toEqual(['answer', false]);
    await leave('other');
    await vi.advanceTimersByTimeAsync(40);
    expect([cancelled, table.size]).toEqual([true, 1]);
  });
});
