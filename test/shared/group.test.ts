import { describe, expect, it, test } from 'vitest';
import {
  type ClosedGroup,
  CONVENTIONS,
  formatCursor,
  groupFigures,
  groupRecordSchema,
  parseCursor,
  refillOf,
  renderGroup,
} from '../../src/shared/group.ts';
import type { Member } from '../../src/shared/outcome.ts';
import { completedWith } from '../support/outcomes.ts';

const lost = (member: number): Member => ({
  member,
  status: 'no_result',
  cause: 'sandbox_lost',
  detail: '',
  attempts: 3,
});

function closed(members: Member[], seq = 1): ClosedGroup {
  return { seq, group: 4, task_id: 't', closed_by: 'all', members };
}
const identity = { run: 'r', incarnation: 'abc123', convention: 'trl' } as const;

describe('the figures of a group', () => {
  // Mean 0.5; sum of squares 1. Sample std √(1/3), population std 1/2.
  const REWARDS = [1, 0, 0, 1];
  const SAMPLE = Math.sqrt(1 / 3);
  test.each([
    ['trl', SAMPLE, 0.5 / (SAMPLE + 1e-4)],
    ['verl', SAMPLE, 0.5 / (SAMPLE + 1e-6)],
    ['openrlhf', SAMPLE, 0.5 / (SAMPLE + 1e-9)],
    ['async_grpo', 0.5, 0.5 / (0.5 + 1e-8)],
    ['art', 0.5, 0.5 / (0.5 + 1e-6)],
  ] as const)('are those that %s computes', (convention, std, advantage) => {
    const figures = groupFigures(REWARDS, convention);
    expect(figures).toMatchObject({ mean: 0.5, degenerate: false });
    expect(figures.std).toBeCloseTo(std, 15);
    expect(figures.advantages[0]).toBeCloseTo(advantage, 14);
    expect(figures.advantages).toEqual([1, -1, -1, 1].map((sign) => sign * Math.abs(figures.advantages[0] as number)));
  });

  it('are TRL’s own for one right answer beside two wrong ones', () => {
    // Seen in the trainer itself: 1.1545, −0.5773, −0.5773.
    expect(groupFigures([1, 0, 0], 'trl').advantages.map((a) => Number(a.toFixed(4)))).toEqual([
      1.1545, -0.5773, -0.5773,
    ]);
  });

  it('are those of the interface’s example', () => {
    const { mean, std, advantages } = groupFigures([1, -0.1], 'trl');
    expect([mean, std]).toEqual([0.45, 0.7778174593052023]);
    expect(advantages[0]).toBeCloseTo(0.7070158838, 10);
    expect(advantages[1]).toBeCloseTo(-0.7070158838, 10);
  });

  it.each(CONVENTIONS)(
    'mark equal rewards as degenerate, exactly, whatever a sum of them rounds to (%s)',
    (convention) => {
      expect(groupFigures([0.1, 0.1, 0.1], convention)).toEqual({
        mean: 0.1,
        std: 0,
        degenerate: true,
        advantages: [0, 0, 0],
      });
    },
  );

  it.each(CONVENTIONS)(
    'give a lone member no advantage, except where the trainer keeps its reward (%s)',
    (convention) => {
      const advantage = convention === 'verl' ? -0.3 : 0;
      expect(groupFigures([-0.3], convention)).toEqual({
        mean: -0.3,
        std: null,
        degenerate: true,
        advantages: [advantage],
      });
    },
  );

  it.each(CONVENTIONS)('are null where nobody completed (%s)', (convention) => {
    expect(groupFigures([], convention)).toEqual({ mean: null, std: null, degenerate: true, advantages: [] });
  });

  it('do not depend on the order of the members, and keep small rewards beside large ones', () => {
    const rewards = [1e16, 1, -1e16, 1];
    const figures = groupFigures(rewards, 'trl');
    expect(figures.mean).toBe(0.5);
    expect(groupFigures([...rewards].reverse(), 'trl').std).toBe(figures.std);
  });

  it('see a difference of one bit as a signal', () => {
    const figures = groupFigures([0.3, 0.1 + 0.2], 'trl');
    expect(figures.degenerate).toBe(false);
    expect(figures.advantages[0]).not.toBe(figures.advantages[1]);
  });
});

describe('a group’s record', () => {
  it('counts only completed members, and gives the others neither reward nor advantage', () => {
    const record = renderGroup(identity, closed([lost(0), completedWith(1, 1), lost(2), completedWith(3, 0)]));
    expect(record).toMatchObject({ mean: 0.5, run: 'r', group: 4, policy_version: null });
    expect(parseCursor('abc123', record.cursor)).toMatchObject({ seq: 1 });
    expect(record.members.map((m) => 'advantage' in m && Math.sign(m.advantage))).toEqual([false, 1, false, -1]);
    expect(record.members[0]).toEqual(lost(0));
    expect(groupRecordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
  });

  it('has no figures when nobody completed', () => {
    expect(renderGroup(identity, closed([lost(0), lost(1)]))).toMatchObject({
      mean: null,
      std: null,
      degenerate: true,
    });
  });
});

describe('a group that may be refilled', () => {
  const spare = (members: Parameters<typeof closed>[0], by: ClosedGroup['closed_by'] = 'all'): ClosedGroup => ({
    ...closed(members),
    closed_by: by,
    spare: 9,
  });

  it.each([
    ['all answers were worth the same', spare([completedWith(0, 1), completedWith(1, 1)]), 9],
    ['those that came were', spare([lost(0), completedWith(1, 0.5), completedWith(2, 0.5)], 'deadline'), 9],
    ['one was worth more', spare([completedWith(0, 1), completedWith(1, 1), completedWith(2, 0)]), null],
    ['a lone answer came', spare([lost(0), completedWith(1, 1)], 'deadline'), null],
    ['none came', spare([lost(0), lost(1)]), null],
    ['its run was cancelled', spare([completedWith(0, 1), completedWith(1, 1)], 'cancelled'), null],
    ['its task has nothing left', closed([completedWith(0, 1), completedWith(1, 1)]), null],
  ])('is told by its record: %s', (_, group, refill) => {
    expect(refillOf(group)).toBe(refill);
    const record = renderGroup(identity, group);
    expect(record.refilled_by ?? null).toBe(refill);
    expect(groupRecordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record);
  });
});

describe('a cursor', () => {
  it('leads back to its place in its own run', () => {
    for (const [seq, mark] of [
      [17, '0123abcd'],
      [0, null],
    ] as const)
      expect(parseCursor('abc123', formatCursor('abc123', seq, mark))).toEqual({ seq, mark });
  });

  it('of one number is another where the group holds anything else', () => {
    const cursorOf = (reward: number): string => renderGroup(identity, closed([completedWith(0, reward)])).cursor;
    expect(cursorOf(1)).toBe(cursorOf(1));
    expect(cursorOf(1)).not.toBe(cursorOf(0.5));
  });

  it.each([
    ['of another run', 'abc124-17'],
    ['with a sign', 'abc123--1'],
    ['with half a mark', 'abc123.0123-1'],
    ['with a leading zero', 'abc123-017'],
    ['with a tail', 'abc123-17\n'],
    ['that is no number', 'abc123-x'],
    ['of more digits than a double keeps', `abc123-${'9'.repeat(17)}`],
    ['that is empty', ''],
    ['without its number', 'abc123-'],
  ])('%s is refused', (_, cursor) => {
    expect(parseCursor('abc123', cursor)).toBeNull();
  });
});
