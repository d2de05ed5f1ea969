// One member that kills its worker whenever it plays, among innocents: only it is set aside, and they complete. The death
// is played here (the worker is buried, and never heard again); death.slow.test.ts kills processes.

import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, type TestContext } from 'vitest';
import type { Role } from '../../src/workers/role.ts';
import { startStageWorker } from '../../src/workers/stage-worker.ts';
import { FarmParts } from '../support/farm-parts.ts';
import { completedWith } from '../support/outcomes.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const DEATHS_OF_ONE_ALONE = 3;
const boxed = {
  env: 'command',
  config: { files: {}, task: 'Say hello.', expected_stdout: 'hello', timeout: 10 },
};

async function farmOf({ onTestFinished }: TestContext): Promise<FarmParts> {
  const farm = await FarmParts.start();
  onTestFinished(() => farm.close());
  return farm;
}

describe.concurrent('a member that kills its worker each time', () => {
  it.each([
    { lane: 'light', size: 8, culprit: 5 },
    { lane: 'light', size: 20, culprit: 11 },
    { lane: 'rollout', size: 4, culprit: 2 },
  ])('is the only one set aside: among $size members of the $lane lane in 4 slots', async ({ lane, size, culprit }) => {
    await check(lane === 'light' ? guessTasks(1) : [{ id: 'c0', ...boxed }], size, culprit);
  });

  async function check(tasks: object[], size: number, culprit: number): Promise<void> {
    const farm = await FarmParts.start();
    try {
      const run = await farm.drive({ group_size: size, tasks, policy: { kind: 'scripted', actions: [4] } });
      let deaths = 0;
      let role: Role | null = null;
      let over = false;
      const roles: Role[] = [];
      const begin = async (): Promise<void> => {
        const seat = farm.seat('rollout', run.run, 4);
        let dead = false;
        const die = async (): Promise<void> => {
          dead = true;
          deaths++;
          await run.ledger.bury(seat.worker, 'rollout died: SIGSEGV', DEATHS_OF_ONE_ALONE);
          // What is left of it is cleared away: it says nothing that counts.
          await role?.stop();
          if (!over) await begin();
        };
        role = await startStageWorker(seat, {
          stage: 'rollout',
          line: 'attempt',
          phase: 'playing',
          failure: 'environment_error',
          close: async () => {},
          perform: async (attempt, _run, running, ledger) => {
            // Long enough that its neighbours have begun.
            await wait(attempt.member === culprit ? 60 : 120);
            if (dead || running.signal.aborted) throw new Error('the process is gone');
            if (attempt.member === culprit) {
              void die();
              await new Promise((_, reject) =>
                running.signal.addEventListener('abort', () => reject(new Error('gone'))),
              );
            }
            return { ledger: await ledger.accept(attempt, completedWith(attempt.member, attempt.member), []) };
          },
        });
        roles.push(role);
      };
      await begin();
      await until('the group is closed', async () => (await run.ledger.field('closed')) === '1', { withinMs: 50_000 });
      over = true;
      const [entry] = await run.ledger.entries(1, 1);
      const members = entry?.closed.members ?? [];
      expect(members.filter((m) => m.status === 'no_result')).toMatchObject([{ member: culprit, cause: 'poison' }]);
      expect(members.filter((m) => m.status === 'completed')).toHaveLength(size - 1);
      expect(deaths).toBeGreaterThanOrEqual(DEATHS_OF_ONE_ALONE);
      expect(deaths).toBeLessThanOrEqual(DEATHS_OF_ONE_ALONE + 2);
      await until('the last one is stopped', () => roles.length === deaths + 1);
      await roles.at(-1)?.stop();
    } finally {
      await farm.close();
    }
  }

  it('is not what a death from outside makes of anybody: nobody waits to be alone', async (context) => {
    const farm = await farmOf(context);
    const run = await farm.drive({
      group_size: 8,
      tasks: guessTasks(1),
      policy: { kind: 'scripted', actions: [4] },
    });
    let hanging = 0;
    const worker = (perform: 'hang' | 'accept') => {
      const seat = farm.seat('rollout', run.run, 8);
      const started = startStageWorker(seat, {
        stage: 'rollout',
        line: 'attempt',
        phase: 'playing',
        failure: 'environment_error',
        close: async () => {},
        perform: async (attempt, _run, { signal }, ledger) => {
          if (perform === 'hang') {
            hanging++;
            await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gone'))));
          }
          return { ledger: await ledger.accept(attempt, completedWith(attempt.member, 1), []) };
        },
      });
      return { seat, started };
    };
    const first = worker('hang');
    const role = await first.started;
    await until('all are at work', () => hanging === 8);
    expect(await run.ledger.bury(first.seat.worker, '', DEATHS_OF_ONE_ALONE)).toBe(8);
    await role.stop();
    const second = await worker('accept').started;
    await until('the group is closed', async () => (await run.ledger.field('closed')) === '1');
    expect(farm.lines.some((line) => /waits to be alone/.test(line.msg ?? ''))).toBe(false);
    await second.stop();
  });
});
