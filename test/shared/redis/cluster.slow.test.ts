// A real cluster of three nodes: whole runs on it, found by its address and by no other, and what is said of one that does
// not serve.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runKey } from '../../../src/shared/ledger/script.ts';
import { TestFarm } from '../../support/farm.ts';
import { freePort } from '../../support/port.ts';
import { TestCluster } from '../../support/redis-fleet.ts';
import { startRedis } from '../../support/redis-server.ts';
import { guessTasks } from '../../support/spec.ts';
import { until } from '../../support/until.ts';
import { expectAccounted, runStatus, succeed } from '../../support/whole-run.ts';

let cluster: TestCluster;
let farm: TestFarm;
beforeAll(async () => {
  cluster = await TestCluster.start();
  farm = new TestFarm({ REDIS_URL: cluster.url });
});
afterAll(async () => {
  await farm.close();
  await cluster.close();
});

const spec = (groups: number): string =>
  farm.file(`spec-${groups}.json`, {
    name: 'clustered',
    group_size: 4,
    tasks: guessTasks(groups),
    policy: { kind: 'scripted', actions: [4, 2, 6, 1] },
  });

const keysOn = (): Promise<number[]> => Promise.all(cluster.servers.map(({ redis }) => redis.dbsize()));

describe('on a cluster', () => {
  it('runs come to their end, each on its node, are sound, and are forgotten whole', async () => {
    const runs = Array.from({ length: 6 }, (_, i) => `run-${i}`);
    for (const run of runs) {
      await succeed(farm, 'run', spec(20), '--run-id', run);
      await expectAccounted(farm, run, 20, 4);
    }
    const homes = new Set(await Promise.all(runs.map(async (run) => (await cluster.nodeOf(runKey(run))).port)));
    expect(homes.size).toBeGreaterThan(1);
    for (const run of runs) await succeed(farm, 'rm', run);
    const left = await Promise.all(cluster.servers.map(({ redis }) => redis.keys('farm:{run-*')));
    expect(left.flat()).toEqual([]);
  });

  it('a run whose node is killed goes on when it is back, and loses nothing', async () => {
    const command = farm.start('run', spec(600), '--run-id', 'shot');
    await until('it is at work', async () => ((await runStatus(farm, 'shot'))?.members.accepted ?? 0) > 200, {
      withinMs: 60_000,
    });
    const node = await cluster.nodeOf(runKey('shot'));
    await node.kill();
    node.restart();
    expect(await command.ended).toMatchObject({ code: 0 });
    await expectAccounted(farm, 'shot', 600, 4);
    for (const server of cluster.servers) await cluster.serves(server);
  });

  it('doctor says what it is', async () => {
    const ended = await farm.run('doctor', '--json');
    const found = (JSON.parse(ended.stdout) as { part: string; ok: boolean; found: string }[]).find(
      ({ part }) => part === 'redis',
    );
    expect(found).toMatchObject({
      ok: true,
      found: expect.stringMatching(/a cluster of 3 masters, AOF on, noeviction/),
    });
    expect(await keysOn()).toHaveLength(3);
  });

  it('is found by any node that is there', async () => {
    const away = `redis+cluster://127.0.0.1:${await freePort()},127.0.0.1:${cluster.servers[1]?.port}`;
    const ended = await elsewhere(away, 'status', '--json');
    expect(ended.code).toBe(0);
  });
});

describe('is refused with exit 3 and the next step', () => {
  it('a node of a cluster, named as a server', async () => {
    const ended = await elsewhere(`redis://127.0.0.1:${cluster.servers[0]?.port}`, 'status');
    expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/node of a cluster[\s\S]*redis\+cluster/) });
  });

  it('a server, named as a cluster', async () => {
    const port = await freePort();
    const server = await startRedis('--port', String(port));
    try {
      const ended = await elsewhere(`redis+cluster://127.0.0.1:${port}`, 'status');
      expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/is not a node of a cluster/) });
    } finally {
      await server.close();
    }
  });

  it('a cluster that lacks a node', async () => {
    const [first, , last] = cluster.servers;
    await last?.kill();
    try {
      await until('the others know', async () =>
        String(await first?.redis.call('CLUSTER', 'INFO')).includes('cluster_state:fail'),
      );
      const ended = await elsewhere(cluster.url, 'status');
      expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/does not serve: \d+ of 16384 slots/) });
    } finally {
      last?.restart();
    }
  });
});

async function elsewhere(url: string, ...args: string[]): ReturnType<TestFarm['run']> {
  const other = new TestFarm({ REDIS_URL: url });
  try {
    return await other.run(...args);
  } finally {
    await other.close();
  }
}
