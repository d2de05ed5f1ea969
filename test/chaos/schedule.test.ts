import { describe, expect, it } from 'vitest';
import { memberFaults, readResults, streamFaults } from '../../src/bench/chaos/account.ts';
import { Draws } from '../../src/bench/chaos/draws.ts';
import { FAULT_KINDS, STORES, scheduleOf, troublesOf } from '../../src/bench/chaos/schedule.ts';

const SIZE = { kills: 12, troubles: 6 };
const seeds = Array.from({ length: 50 }, (_, n) => BigInt(n));

describe('a schedule of faults', () => {
  it('is the same for the same seed, to the last figure, and another for another seed', () => {
    for (const seed of seeds) expect(scheduleOf(seed, SIZE)).toEqual(scheduleOf(seed, SIZE));
    expect(new Set(seeds.map((seed) => JSON.stringify(scheduleOf(seed, SIZE)))).size).toBe(seeds.length);
  });

  it('is what it was when a seed was written down: a report of last year can be played again', () => {
    const [first] = scheduleOf(1n, { kills: 1, troubles: 0 });
    expect(first).toEqual({ kind: 'killed', at: 0.6607, holdMs: 778, target: 954_051_180, overlaps: false });
    // The first number of splitmix64 for the seed 0 is e220a8397b1dcdaf.
    expect(new Draws(0n).below(2 ** 32)).toBe(0xe220a839);
  });

  it('has as many kills and other faults as were asked for, one after another while the run is at work', () => {
    for (const seed of seeds) {
      const events = scheduleOf(seed, SIZE);
      expect(events.filter((e) => /killed$/.test(e.kind))).toHaveLength(SIZE.kills);
      expect(events).toHaveLength(SIZE.kills + SIZE.troubles);
      const places = events.map((e) => e.at);
      expect(places).toEqual([...places].sort((a, b) => a - b));
      for (const { at, holdMs, target } of events) {
        expect(at).toBeGreaterThan(0);
        expect(at).toBeLessThan(0.9);
        expect(holdMs).toBeGreaterThanOrEqual(200);
        expect(Number.isInteger(target)).toBe(true);
      }
    }
  });

  it.each(STORES)(
    'comes to every kind of fault that a farm with such a store can have before any other than a kill comes twice: %s',
    (store) => {
      const troubles = troublesOf(store);
      for (const seed of seeds) {
        const kinds = scheduleOf(seed, { kills: 0, troubles: troubles.length, store }).map((e) => e.kind);
        expect(new Set(kinds)).toEqual(new Set(troubles));
      }
      const all = new Set(seeds.flatMap((seed) => scheduleOf(seed, { ...SIZE, store }).map((e) => e.kind)));
      expect(all).toEqual(new Set([...troubles, ...FAULT_KINDS.filter((kind) => /killed$/.test(kind))]));
    },
  );

  it('has every kind for one of the stores', () => {
    expect(new Set(STORES.flatMap((store) => troublesOf(store)))).toEqual(
      new Set(FAULT_KINDS.filter((kind) => !/killed$/.test(kind))),
    );
  });

  it('lets nothing begin beside a loss of power', () => {
    for (const seed of seeds)
      for (const event of scheduleOf(seed, { kills: 4, troubles: 40 }))
        if (event.kind === 'power-lost') expect(event.overlaps).toBe(false);
  });
});

describe('the account after a schedule', () => {
  const planned = [0, 1, 2].map((member) => ({ task: 't', member, reward: member / 4 }));
  const record = (cursor: string, members: object[]): string =>
    JSON.stringify({ cursor, group: Number(cursor), task_id: 't', members });
  const completed = (member: number, reward = member / 4) => ({ member, status: 'completed', reward });
  const faultsOf = (...lines: string[]): string[] => memberFaults(planned, readResults(lines.join('\n')));

  it('finds nothing where every member is there once, with its reward', () => {
    expect(
      faultsOf(
        record(
          '0',
          [0, 1, 2].map((m) => completed(m)),
        ),
      ),
    ).toEqual([]);
  });

  it.each([
    ['a member that is in no group', [completed(0), completed(1)], /lost: t\/2/],
    [
      'a member without result',
      [completed(0), completed(1), { member: 2, status: 'no_result', cause: 'x' }],
      /lost: t\/2.*x/,
    ],
    ['a reward of a neighbour', [completed(0), completed(1), completed(2, 0.25)], /wrong reward: t\/2/],
    ['a member counted twice', [completed(0), completed(1), completed(2), completed(2)], /counted twice: t\/2/],
    ['a member that nobody planned', [completed(0), completed(1), completed(2), completed(3)], /nobody planned t\/3/],
  ])('finds %s', (_, members, says) => {
    expect(faultsOf(record('0', members))).toEqual([expect.stringMatching(says)]);
  });

  it.each([
    ['a gap', [0, 2], /gap: groups 1/],
    ['a repeat', [0, 1, 1, 2], /repeated groups 1/],
    ['another order', [1, 0, 2], /part at place 0/],
  ])('finds %s in the trainer’s stream', (_, groups, says) => {
    const results = readResults(['0', '1', '2'].map((cursor) => record(cursor, [])).join('\n'));
    const follower = { groups, cursors: groups.map(String), odd: [] };
    expect(streamFaults(follower, results)[0]).toMatch(says);
    const whole = { groups: [0, 1, 2], cursors: ['0', '1', '2'], odd: [] };
    expect(streamFaults(whole, results)).toEqual([]);
  });
});
