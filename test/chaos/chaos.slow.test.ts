import { describe, expect, it, type TestContext } from 'vitest';
import { TestFarm } from '../support/farm.ts';

interface Report {
  violations: string[];
  kills: number;
  faults: Record<string, number>;
  missed: number;
  left_out: Record<string, string>;
  members: number;
  accepted: number;
}

/** Its violations say with their seed how to see them again: they are shown, not their number. */
async function fire({ onTestFinished }: TestContext, ...args: string[]): Promise<Report> {
  const farm = new TestFarm();
  onTestFinished(() => farm.close());
  const { code, stdout, stderr } = await farm.run('bench', 'chaos', '--json', '--minutes', '5', ...args);
  if (stdout === '') throw new Error(stderr);
  const report = JSON.parse(stdout) as Report;
  expect(report.violations, stderr).toEqual([]);
  expect(code).toBe(0);
  expect(report.accepted).toBe(report.members);
  return report;
}

describe('a farm under fire', { timeout: 360_000 }, () => {
  it('loses nothing, counts nothing twice and leaves nothing behind while workers, driver and Redis are killed', async (context) => {
    const report = await fire(context, '--seed', '52147', '--kills', '5', '--faults', '1', '--members', '96');
    expect(report).toMatchObject({ kills: 5, missed: 0, left_out: {} });
  });

  it('shows in status, top and its log what it waits for, while it waits', async (context) => {
    const kinds = [
      'role-gone',
      'redis-stopped',
      'redis-full',
      'engine-hung',
      'store-full',
      'store-readonly',
      'verifier-down',
      'verifier-rate-limited',
    ];
    const only = kinds.flatMap((kind) => ['--only', kind]);
    const size = ['--kills', '0', '--faults', String(kinds.length), '--members', '160'];
    const report = await fire(context, '--seed', '64', ...size, ...only);
    expect(report).toMatchObject({ missed: 0, left_out: {}, faults: Object.fromEntries(kinds.map((k) => [k, 1])) });
  });
});
