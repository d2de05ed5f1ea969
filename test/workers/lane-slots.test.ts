import { describe, expect, it } from 'vitest';
import { LaneSlots } from '../../src/workers/lane-slots.ts';

/** Work that ends when it is told to. */
class Desk {
  readonly begun: string[] = [];
  private readonly ends = new Map<string, () => void>();

  async work(name: string): Promise<void> {
    this.begun.push(name);
    await new Promise<void>((resolve) => this.ends.set(name, resolve));
  }

  async end(name: string): Promise<void> {
    this.ends.get(name)?.();
    await settled();
  }
}

const settled = async (): Promise<void> => {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe('the slots of a lane', () => {
  it('have as many at work as there are, the others in the order in which they came', async () => {
    const slots = new LaneSlots(2);
    const desk = new Desk();
    const all = ['a', 'b', 'c', 'd'].map((name) => slots.work(() => desk.work(name)));
    await settled();
    expect(desk.begun).toEqual(['a', 'b']);
    await desk.end('b');
    expect(desk.begun).toEqual(['a', 'b', 'c']);
    await desk.end('a');
    expect(desk.begun).toEqual(['a', 'b', 'c', 'd']);
    await desk.end('c');
    await desk.end('d');
    await Promise.all(all);
  });

  it('are free again once, whether work is over, throws, or has left before', async () => {
    const slots = new LaneSlots(1);
    const desk = new Desk();
    await expect(slots.work(() => Promise.reject(new Error('a bug')))).rejects.toThrow('a bug');
    const leaving = slots.work(async (leave) => {
      leave();
      leave();
      await desk.work('asks the ledger');
    });
    const [second, third] = [slots.work(() => desk.work('second')), slots.work(() => desk.work('third'))];
    await settled();
    expect(desk.begun).toEqual(['asks the ledger', 'second']);
    await desk.end('asks the ledger');
    await leaving;
    expect(desk.begun).toHaveLength(2);
    await desk.end('second');
    await desk.end('third');
    await Promise.all([second, third]);
  });

  it('let a job be begun while no more than a row of slots waits, and the next when it has moved up', async () => {
    const slots = new LaneSlots(2);
    const entered: string[] = [];
    const enter = (name: string, count: number) => slots.enter(count).then(() => entered.push(name));
    void enter('first', 3);
    void enter('second', 8);
    void enter('third', 1);
    await settled();
    expect(entered).toEqual(['first']);
    slots.passed(1);
    slots.passed(1);
    await settled();
    expect(entered).toEqual(['first', 'second']);
    // One of the first and eight of the second are left.
    slots.passed(7);
    await settled();
    expect(entered).toEqual(['first', 'second']);
    slots.passed(1);
    await settled();
    expect(entered).toEqual(['first', 'second', 'third']);
  });
});
