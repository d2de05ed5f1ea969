// A master, two replicas and three Sentinels, all real: a run rides over a failover, also over one that loses what was
// acknowledged. Replication is asynchronous, so that can be; the store's shards then say what holds, and what closed beyond
// them is begun anew.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { type Command, TestFarm } from '../../support/farm.ts';
import { type RedisProcess, SentinelTrio } from '../../support/redis-fleet.ts';
import { guessTasks } from '../../support/spec.ts';
import { until } from '../../support/until.ts';
import { expectAccounted, succeed } from '../../support/whole-run.ts';

const [GROUPS, SIZE] = [400, 4];
const PATIENCE = { withinMs: 90_000, everyMs: 50 };

let trio: SentinelTrio;
let farm: TestFarm;
let master: RedisProcess;
let command: Command;
beforeEach(async () => {
  trio = await SentinelTrio.start();
  farm = new TestFarm({ REDIS_URL: trio.url });
  master = await trio.master();
  const spec = farm.file('spec.json', {
    name: 'watched',
    group_size: SIZE,
    tasks: guessTasks(GROUPS),
    policy: { kind: 'scripted', actions: [4, 2, 6, 1] },
    limits: { in_flight: 8 },
  });
  command = farm.start('run', spec, '--run-id', 'watched', '--workers', '1');
  await accepted(master, 200);
});
afterEach(async () => {
  await farm.close();
  await trio.close();
});

const field = async (on: RedisProcess, name: string): Promise<number> =>
  Number(await new RunLedger(on.redis, 'watched').field(name));
const accepted = (on: RedisProcess, members: number): Promise<unknown> =>
  until(`${members} members are accepted`, async () => (await field(on, 'accepted')) >= members, PATIENCE);
const promoted = (): Promise<RedisProcess> =>
  until(
    'another is the master',
    async () => {
      const now = await trio.master();
      return now !== master && /role:master/.test(await now.redis.info('replication')) && now;
    },
    PATIENCE,
  );

describe('a run over a failover', () => {
  it('goes on with the new master: nothing lost, nothing twice', async () => {
    await master.kill();
    const now = await promoted();
    expect(await field(now, 'accepted')).toBeLessThan(GROUPS * SIZE);
    expect(await command.ended).toMatchObject({ code: 0 });
    await expectAccounted(farm, 'watched', GROUPS, SIZE);
    expect(JSON.parse(await succeed(farm, 'status', 'watched', '--json'))).toMatchObject({ state: 'done' });
  }, 400_000);

  it('that loses what was acknowledged follows the shards of the store, and begins the rest anew', async () => {
    // Replicas that stand still acknowledge nothing, and nobody asks them to: the master goes on alone. What is on its way to
    // them would still arrive: so they lose their lines too.
    for (const replica of trio.replicasOf(master)) replica.standStill(true);
    await master.redis.client('KILL', 'TYPE', 'REPLICA');
    const [before, shards] = [await field(master, 'accepted'), await field(master, 'shards')];
    await until(
      'shards are committed that no replica knows of',
      async () => (await field(master, 'shards')) > shards,
      PATIENCE,
    );
    await accepted(master, before + 200);
    const lost = await field(master, 'accepted');
    await master.kill();
    for (const replica of trio.replicasOf(master)) replica.standStill(false);
    const now = await promoted();
    expect(await field(now, 'accepted')).toBeLessThan(lost);
    expect(await command.ended).toMatchObject({ code: 0 });
    await expectAccounted(farm, 'watched', GROUPS, SIZE);
    expect(command.stderr).toMatch(/Redis has lost writes: the ledger follows the store/);
  }, 400_000);
});
