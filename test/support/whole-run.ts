// Runs as whole commands have them: what a command printed where it should succeed, how a run stands, and its account,
// every member of every group exactly once.

import { expect } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import type { RunStatus } from '../../src/shared/ledger/run-status.ts';
import type { TestFarm } from './farm.ts';

/** Throws what the command said if it did not succeed. */
export async function succeed(farm: TestFarm, ...args: string[]): Promise<string> {
  const ended = await farm.run(...args);
  if (ended.code === 0) return ended.stdout;
  throw new Error(`${args.join(' ')}: exit ${ended.code}\n${ended.stderr}\n${ended.stdout}`);
}

/** Null where it is not known (yet). */
export async function runStatus(farm: TestFarm, run: string): Promise<RunStatus | null> {
  const ended = await farm.run('status', run, '--json');
  return ended.code === 0 ? (JSON.parse(ended.stdout) as RunStatus) : null;
}

export async function expectAccounted(farm: TestFarm, run: string, groups: number, size: number): Promise<void> {
  const check = JSON.parse(await succeed(farm, 'verify-run', run, '--json')) as Record<string, unknown>;
  expect(check).toMatchObject({ ok: true, groups, members: groups * size, faults: [] });
  const lines = (await succeed(farm, 'results', run)).split('\n').filter(Boolean);
  const records = lines.map((line) => JSON.parse(line) as GroupRecord);
  expect(records.map((record) => record.group).sort((a, b) => a - b)).toEqual(
    Array.from({ length: groups }, (_, i) => i),
  );
  for (const { members } of records)
    expect(members.map(({ member, status }) => [member, status])).toEqual(
      Array.from({ length: size }, (_, i) => [i, 'completed']),
    );
}
