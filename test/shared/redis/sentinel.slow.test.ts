// A master, two replicas and three Sentinels, all real: a run rides over a failover, also over one that loses what was
// acknowledged. Replication is asynchronous, so that can be; the store's shards then say what holds, and what closed beyond
// them is begun anew.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunLedger } from '../../../src/shared/ledger/run-ledger.ts';
import { type Command, TestFarm } from '../../support/farm.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { type RedisProcess, SentinelTrio } from '../../support/redis-fleet.ts';
import { guessTasks } from '../../support/spec.ts';
import { type StubPlatform, startStub } from '../../support/stub-platform.ts';
import { until } from '../../support/until.ts';
import { expectAccounted, succeed } from '../../support/whole-run.ts';

const [SIZE, IN_FLIGHT] = [4, 8];
/** Guesses (the second stretch brings the first shard), and between them as many groups as may be in flight whose verifier
 *  answers when the test says so. */
const STRETCHES = { before: 60, between: 20, after: 60 };
const HELD = IN_FLIGHT / SIZE;
const GROUPS = STRETCHES.before + HELD + STRETCHES.between + HELD + STRETCHES.after;
const PATIENCE = { withinMs: 120_000, everyMs: 50 };

let trio: SentinelTrio;
let stub: StubPlatform;
let gates: Record<'first' | 'second', Gate>;
let farm: TestFarm;
let master: RedisProcess;
let command: Command;
beforeEach(async () => {
  trio = await SentinelTrio.start();
  gates = { first: gate(), second: gate() };
  stub = await startStub(({ queries }) => ({
    after: gates[queries.some((query) => query.includes('first')) ? 'first' : 'second'].opened,
  }));
  farm = new TestFarm({ REDIS_URL: trio.url, AMBERTRACE_BASE_URL: stub.baseUrl, AMBERTRACE_API_KEY: 'at_watched' });
  master = await trio.master();
  command = farm.start('run', spec(), '--run-id', 'watched', '--workers', '1');
  await accepted(master, STRETCHES.before * SIZE);
});
afterEach(async () => {
  await farm.close();
  await stub.close();
  await trio.close();
});

function spec(): string {
  const guesses = guessTasks(STRETCHES.before + STRETCHES.between + STRETCHES.after);
  const held = (name: string) =>
    Array.from({ length: HELD }, (_, i) => ({ id: `${name}${i}`, env: 'text', config: {}, prompt: 'May it go on?' }));
  const tasks: { id?: unknown }[] = [
    ...guesses.splice(0, STRETCHES.before),
    ...held('first'),
    ...guesses.splice(0, STRETCHES.between),
    ...held('second'),
    ...guesses,
  ];
  const play = (id: string) => {
    const name = id.replace(/\d+$/, '');
    if (name === 'g') return { task_id: id, actions: [4, 2, 6, 1] };
    return { task_id: id, completion: `<decision>{"classification": "permit", "facts": {"${name}": 1}}</decision>` };
  };
  farm.file('plays.jsonl', tasks.map(({ id }) => `${JSON.stringify(play(String(id)))}\n`).join(''));
  return farm.file('spec.json', {
    name: 'watched',
    group_size: SIZE,
    tasks,
    policy: { kind: 'completions', path: 'plays.jsonl', cycle: true },
    domain: { platform_id: 1, query_template: 'Is it {facts}?', parser: 'json_block' },
    limits: { in_flight: IN_FLIGHT },
  });
}

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
    for (const { open } of Object.values(gates)) open();
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
    gates.first.open();
    await until(
      'shards are committed that no replica knows of',
      async () => (await field(master, 'shards')) > shards,
      PATIENCE,
    );
    await accepted(master, before + STRETCHES.between * SIZE);
    const lost = await field(master, 'accepted');
    await master.kill();
    for (const replica of trio.replicasOf(master)) replica.standStill(false);
    const now = await promoted();
    expect(await field(now, 'accepted')).toBeLessThan(lost);
    gates.second.open();
    expect(await command.ended).toMatchObject({ code: 0 });
    await expectAccounted(farm, 'watched', GROUPS, SIZE);
    expect(command.stderr).toMatch(/Redis has lost writes: the ledger follows the store/);
  }, 400_000);
});
