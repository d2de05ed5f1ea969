// A run in the ledger that another version of the farm opened: no script touches it, every door names it, lists go on.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { knownRuns, rememberRun } from '../../../src/shared/ledger/known-runs.ts';
import { LEDGER_VERSION } from '../../../src/shared/ledger/ledger-version.ts';
import { MemberLedger } from '../../../src/shared/ledger/member-ledger.ts';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { readSettings } from '../../../src/shared/ledger/run-settings.ts';
import { readStatus, unreadable } from '../../../src/shared/ledger/run-status.ts';
import { runKey } from '../../../src/shared/ledger/script.ts';
import { completedWith } from '../../support/outcomes.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

let server: TestRedis;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.close());

const OPENING = {
  size: 1,
  groups: 1,
  close: 'all',
  at_least: 0,
  deadline_ms: 1e6,
  slot_wait_ms: 1e6,
  refill: 1,
  max_attempts: 3,
};
const PLACE = { pack: 'a'.repeat(64), offset: 0, bytes: 10, sha256: 'b'.repeat(64) };

/** At work, and then of another version: `null` is one from before versions were written down. */
async function ofVersion(run: string, version: string | null) {
  const ledger = new RunLedger(server.redis, run);
  await ledger.open(OPENING);
  expect(await ledger.field('version')).toBe(LEDGER_VERSION);
  const { epoch } = (await ledger.drive('driver')) as { epoch: string };
  await ledger.openGroups(epoch, 0, [{ taskId: 't', place: PLACE, lane: 'light' }]);
  await ledger.due(epoch, { light: 1 });
  const worker = new MemberLedger(server.redis, 'worker');
  const attempt = await worker.begin({ run, group: 0, member: 0 }, 'rollout');
  if ('refused' in attempt) throw new Error(attempt.refused);
  await rememberRun(server.redis, run, 'shared');
  if (version === null) await server.redis.hdel(`${runKey(run)}:run`, 'version');
  else await server.redis.hset(`${runKey(run)}:run`, 'version', version);
  return { ledger, epoch, worker, attempt };
}

async function everything(run: string): Promise<unknown> {
  const keys = (await server.redis.keys(`${runKey(run)}:*`)).sort();
  return Promise.all(keys.map(async (key) => [key, (await server.redis.dump(key))?.toString()]));
}

describe.each([
  ['from before versions were written down', null, '1'],
  ['of a version to come', '99', '99'],
])('a ledger %s', (name, version, told) => {
  const run = `other-${told}`;

  it(`is refused by every script, by its version, and stays as it was (${name})`, async () => {
    const { ledger, epoch, worker, attempt } = await ofVersion(run, version);
    const before = await everything(run);
    const calls: [string, () => Promise<unknown>][] = [
      ['open', () => ledger.open(OPENING)],
      ['drive', () => ledger.drive('another')],
      ['undrive', () => ledger.undrive('driver')],
      ['sit', () => ledger.sit()],
      ['open groups', () => ledger.openGroups(epoch, 1, [])],
      ['open spares', () => ledger.openSpares(epoch, [])],
      ['due', () => ledger.due(epoch, { light: 1 })],
      ['tick', () => ledger.tick(epoch)],
      ['bury', () => ledger.bury('worker', 'SIGSEGV', 1)],
      ['state', () => ledger.setState('cancelled')],
      ['field', () => ledger.setField('manifest', '1')],
      ['close open', () => ledger.closeOpen(10)],
      ['fix a shard', () => ledger.fixShard({ most: 1, least: 1, final: true })],
      ['commit', () => ledger.commit({ number: 0, from: 1, to: 1, link: 'l' })],
      ['catch up', () => ledger.catchUp('x', { number: 0, from: 1, to: 1, link: 'l', refills: [] })],
      ['reconciled', () => ledger.reconciled('x')],
      ['begin', () => worker.begin({ run, group: 0, member: 0 }, 'rollout')],
      ['beat', () => worker.beat(run, [{ group: 0, member: 0, token: attempt.token, phase: 'x' }])],
      ['joined', () => worker.joined(attempt)],
      ['rolled', () => worker.rolled(attempt, '{}', [])],
      ['accept', () => worker.accept(attempt, completedWith(0, 1), [])],
      ['fail', () => worker.fail(attempt, { cause: 'sandbox_lost', detail: '', charged: true, delayMs: 0 })],
    ];
    for (const [what, refused] of calls)
      await expect(refused(), what).rejects.toMatchObject({
        code: 'ledger_version',
        exit: 2,
        message: expect.stringContaining(`layout ${told},`),
        hint: expect.stringContaining(`farm rm ${run}`),
      });
    expect(await everything(run)).toEqual(before);
  });

  it('has no status of its own, and hides no other run in a list', async () => {
    await expect(readStatus(server.redis, run)).rejects.toMatchObject({ code: 'ledger_version' });
    expect(await knownRuns(server.redis, null)).toContain(run);
    const row = await readStatus(server.redis, run).catch(unreadable(run));
    expect(row).toMatchObject({ run, state: 'stopped', reason: expect.stringContaining(`layout ${told},`) });
    const broken = (): never => unreadable(run)(new Error('another')) as never;
    expect(broken).toThrow('another');
  });
});

describe('settings of a run', () => {
  it.each([
    ['without a field that this version needs', '{"name": "x"}'],
    ['with one that it does not know', '{"colour": "red"}'],
    ['that are no JSON', 'settings'],
  ])('%s are refused with what to do, and never filled in', (_, text) => {
    expect(() => readSettings(text)).toThrow(
      expect.objectContaining({ code: 'run_settings', exit: 2, hint: expect.stringContaining('farm rm') }),
    );
  });
});
