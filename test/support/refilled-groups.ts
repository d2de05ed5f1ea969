// The account of a run that refills degenerate groups: each group once, and each task with the groups that it should have.

import { expect } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';

export function expectRefilled(records: readonly GroupRecord[], expected: Readonly<Record<string, number[]>>): void {
  const tasks = Object.keys(expected);
  const byNumber = new Map(records.map((record) => [record.group, record]));
  expect(byNumber.size).toBe(records.length);
  for (const [group, task] of tasks.entries()) {
    const chain: GroupRecord[] = [];
    for (let at: number | undefined = group; at !== undefined; at = chain.at(-1)?.refilled_by) {
      const record = byNumber.get(at) ?? expect.unreachable(`group ${at} has no record`);
      byNumber.delete(at);
      chain.push(record);
    }
    expect(new Set(chain.map((record) => record.task_id))).toEqual(new Set([task]));
    expect(
      chain.map((record) => (record.degenerate ? 0 : 1)),
      task,
    ).toEqual(expected[task]);
    for (const { members } of chain)
      expect(members.map(({ member, status }) => [member, status])).toEqual([
        [0, 'completed'],
        [1, 'completed'],
      ]);
  }
  expect([...byNumber.keys()]).toEqual([]);
}
