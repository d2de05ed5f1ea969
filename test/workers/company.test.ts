import { describe, expect, it } from 'vitest';
import type { Attempt, Company } from '../../src/shared/ledger/member-ledger.ts';
import { Companies } from '../../src/workers/company.ts';
import { until } from '../support/until.ts';

/** Members by name; what the ledger hears stands in `told`, in order. */
function workerOf() {
  const told: string[] = [];
  const ends = new Map<string, () => void>();
  const companies = new Companies({
    joined: async ({ token }: Attempt) => {
      await Promise.resolve();
      told.push(`${token} joined`);
    },
  });
  const begin = (name: string, count: number) => async (company: Company) => {
    told.push(`${name} ${company.alone ? 'alone' : 'beside'}`);
    await Promise.resolve();
    return Array.from({ length: count }, () => ({ token: name }) as Attempt);
  };
  const work = (name: string) => () => new Promise<void>((resolve) => ends.set(name, resolve));
  const at = (name: string): boolean => ends.has(name);
  return {
    told,
    companies,
    among: (name: string, count = 1) => companies.among(count, begin(name, count), work(name)),
    alone: (name: string) => companies.alone(begin(name, 1), work(name)),
    begun: (...names: string[]) => until(`${names.join(', ')} at work`, () => names.every(at)),
    at,
    end: (name: string): void => {
      ends.get(name)?.();
      ends.delete(name);
    },
  };
}

describe('a member’s company', () => {
  it('is told to the ledger: the one that was alone is not any more, before the next begins', async () => {
    const w = workerOf();
    void w.among('a');
    void w.among('b');
    void w.among('c');
    await w.begun('a', 'b', 'c');
    expect(w.told).toEqual(['a alone', 'a joined', 'b beside', 'c beside']);
    for (const name of ['a', 'b', 'c']) w.end(name);
    await until('all have left', () => !w.at('a'));
    await Promise.resolve();
    void w.among('d');
    await w.begun('d');
    expect(w.told.at(-1)).toBe('d alone');
  });

  it('of several in one job is the others', async () => {
    const w = workerOf();
    void w.among('eight', 8);
    await w.begun('eight');
    expect(w.told).toEqual(['eight beside']);
  });

  it('of a suspect is nobody: it waits until all have left, nobody enters before it, and suspects go one by one', async () => {
    const w = workerOf();
    void w.among('a');
    await w.begun('a');
    void w.alone('s1');
    void w.alone('s2');
    void w.among('b');
    await Promise.resolve();
    expect([w.at('s1'), w.at('s2'), w.at('b')]).toEqual([false, false, false]);
    w.end('a');
    await w.begun('s1');
    expect([w.at('s2'), w.at('b')]).toEqual([false, false]);
    w.end('s1');
    await w.begun('s2');
    expect(w.at('b')).toBe(false);
    w.end('s2');
    await w.begun('b');
    expect(w.told).toEqual(['a alone', 's1 alone', 's2 alone', 'b alone']);
  });

  it('may be a sample that somebody waits for: it does not wait, and proves nothing of a suspect', async () => {
    const w = workerOf();
    void w.alone('s1');
    await w.begun('s1');
    const leave = await w.companies.guest();
    expect(w.told).toEqual(['s1 alone', 's1 joined']);
    w.end('s1');
    void w.alone('s2');
    await w.begun('s2');
    expect(w.told.at(-1)).toBe('s2 beside');
    leave();
    w.end('s2');
    void w.alone('s3');
    await w.begun('s3');
    expect(w.told.at(-1)).toBe('s3 alone');
  });

  it('that cannot be told leaves the newcomer out, and is told at the next try', async () => {
    let away = true;
    const told: string[] = [];
    const companies = new Companies({
      joined: async () => {
        if (away) throw new Error('Redis is away');
        told.push('joined');
      },
    });
    let end = (): void => {};
    const begin = async () => [{ token: 'x' } as Attempt];
    const first = companies.among(1, begin, () => new Promise<void>((resolve) => (end = resolve)));
    await expect(companies.among(1, begin, async () => void told.push('b'))).rejects.toThrow('away');
    await expect(companies.guest()).rejects.toThrow('away');
    away = false;
    await companies.among(1, begin, async () => void told.push('b'));
    expect(told).toEqual(['joined', 'b']);
    end();
    await first;
  });

  it('is nobody’s any more when the process goes away: who waits begins nothing', async () => {
    const w = workerOf();
    void w.among('a');
    await w.begun('a');
    const waiting = [w.alone('s'), w.among('b')];
    w.companies.close();
    await Promise.all([...waiting, w.among('c'), w.alone('t')]);
    expect(w.told).toEqual(['a alone']);
    w.end('a');
  });
});
