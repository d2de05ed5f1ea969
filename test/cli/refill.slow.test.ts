// Degenerate groups are refilled under fire: everything is killed in the middle, and the same command goes on.

import { expect, it } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { TestFarm } from '../support/farm.ts';
import { killAll } from '../support/processes.ts';
import { refillSpec } from '../support/refill-spec.ts';
import { expectRefilled } from '../support/refilled-groups.ts';
import { until } from '../support/until.ts';
import { runStatus, succeed } from '../support/whole-run.ts';

async function resultsOf(farm: TestFarm): Promise<GroupRecord[]> {
  const lines = (await succeed(farm, 'results', 'd')).split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as GroupRecord);
}

it('goes on after kill -9 of everything, thrice: each degenerate group is refilled once, and the stream is what it was', async ({
  onTestFinished,
}) => {
  const farm = new TestFarm();
  onTestFinished(() => farm.close());
  const { spec, groups, expected } = refillSpec(30, (name, content) => farm.file(name, content));
  const file = farm.file('refill.json', { ...spec, limits: { in_flight: 4 } });
  const seen: GroupRecord[][] = [];
  // The first of them among the plan's own groups, the last among those that refill.
  for (const closed of [20, 90, 150]) {
    const command = farm.start('run', file, '--run-id', 'd');
    await until(
      `${closed} groups are closed`,
      async () => ((await runStatus(farm, 'd'))?.groups.closed ?? 0) >= closed,
      {
        withinMs: 60_000,
        everyMs: 50,
      },
    );
    await until('everything is killed', () => {
      killAll(farm.processes);
      return farm.processes.length === 0;
    });
    expect((await command.ended).code).toBeNull();
    seen.push(await resultsOf(farm));
    expect(seen.at(-1)?.length).toBeLessThan(groups);
  }
  expect(seen.at(-1)?.some((record) => record.group >= 120)).toBe(true);
  const ended = JSON.parse(await succeed(farm, 'run', file, '--run-id', 'd', '--json')) as unknown;
  expect(ended).toMatchObject({
    state: 'done',
    groups: { planned: groups, closed: groups },
    members: { planned: 2 * groups, completed: 2 * groups, no_result: 0 },
  });
  const check = JSON.parse(await succeed(farm, 'verify-run', 'd', '--json')) as unknown;
  expect(check).toMatchObject({ ok: true, faults: [], groups, members: 2 * groups });
  const records = await resultsOf(farm);
  for (const before of seen) expect(records.slice(0, before.length)).toEqual(before);
  expectRefilled(records, expected);
});
