// Several real Redis servers of the test's own: a master with replicas under Sentinels, or a cluster. Each can be killed,
// stood still and started again on its folder; all are gone with the test.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { freePort } from './port.ts';
import { until } from './until.ts';

const CONF = fileURLToPath(new URL('../../infra/redis.conf', import.meta.url));
const HOST = '127.0.0.1';
const START = { withinMs: 120_000, everyMs: 50 };

/** A cluster's bus is so far above its port. */
const BUS = 10_000;

export class RedisProcess {
  readonly port: number;
  /** Ours, beside those of the farm. */
  readonly redis: Redis;
  private readonly command: readonly string[];
  private child: ChildProcess;
  private ended: Promise<void> = Promise.resolve();

  constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port;
    this.command = [...args, '--port', String(port), '--bind', HOST, '--dir', folder];
    this.child = this.spawn();
    this.redis = new Redis({ host: HOST, port, retryStrategy: () => 50, maxRetriesPerRequest: null });
    this.redis.on('error', () => {});
  }

  private spawn(): ChildProcess {
    const child = spawn('redis-server', this.command, { stdio: 'ignore' });
    this.ended = new Promise((resolve) => child.once('exit', () => resolve()));
    return child;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  restart(): void {
    this.child = this.spawn();
  }

  standStill(still: boolean): void {
    this.child.kill(still ? 'SIGSTOP' : 'SIGCONT');
  }

  async close(): Promise<void> {
    this.redis.disconnect();
    await this.kill();
  }
}

class Fleet {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'farm-test-fleet-'));
  readonly servers: RedisProcess[] = [];

  protected async server(...args: string[]): Promise<RedisProcess> {
    const port = await freePort(BUS);
    const folder = mkdtempSync(path.join(this.folder, 'node-'));
    // A copy: Sentinels have servers rewrite the file that they were started with.
    const conf = path.join(folder, 'redis.conf');
    copyFileSync(CONF, conf);
    const server = new RedisProcess(port, folder, [conf, ...args]);
    this.servers.push(server);
    await until('a Redis of the fleet answers', () => server.redis.ping().catch(() => false), START);
    return server;
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class TestCluster extends Fleet {
  static async start(nodes = 3): Promise<TestCluster> {
    const cluster = new TestCluster();
    const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
    for (let i = 0; i < nodes; i++) await cluster.server(...settings);
    const addresses = cluster.servers.map(({ port }) => `${HOST}:${port}`);
    execFileSync('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'], { stdio: 'ignore' });
    for (const server of cluster.servers) await cluster.serves(server);
    return cluster;
  }

  get url(): string {
    return `redis+cluster://${this.servers.map(({ port }) => `${HOST}:${port}`).join(',')}`;
  }

  /** Waits until a node says that every slot is served. */
  async serves({ redis }: RedisProcess): Promise<void> {
    const ok = async (): Promise<boolean> => String(await redis.call('CLUSTER', 'INFO')).includes('cluster_state:ok');
    await until('the cluster serves all slots', ok, START);
  }

  /** The node that has a key. */
  async nodeOf(key: string): Promise<RedisProcess> {
    for (const server of this.servers) {
      const answer = await server.redis.exists(key).catch(() => -1);
      if (answer >= 0) return server;
    }
    throw new Error(`no node serves ${key}`);
  }
}

/** One master, two replicas, three Sentinels of which two must agree. */
export class SentinelTrio extends Fleet {
  readonly name = 'farm-master';
  readonly sentinels: RedisProcess[] = [];

  static async start(...settings: string[]): Promise<SentinelTrio> {
    const trio = new SentinelTrio();
    const master = await trio.server(...settings);
    for (let i = 0; i < 2; i++) await trio.server(...settings, '--replicaof', `${HOST} ${master.port}`);
    await until(
      'both replicas are in step',
      async () =>
        /connected_slaves:2[\s\S]*slave0:.*state=online[\s\S]*slave1:.*state=online/.test(
          await master.redis.info('replication'),
        ),
      START,
    );
    for (let i = 0; i < 3; i++) trio.sentinels.push(await trio.sentinel(master.port));
    trio.servers.push(...trio.sentinels);
    for (const { redis } of trio.sentinels)
      await until(
        'the Sentinels know each other and the replicas',
        async () => {
          const flat = ((await redis.call('SENTINEL', 'MASTER', trio.name)) as unknown[]).flat().map(String);
          const field = (name: string): string | undefined => flat[flat.indexOf(name) + 1];
          return field('num-other-sentinels') === '2' && field('num-slaves') === '2';
        },
        START,
      );
    return trio;
  }

  private async sentinel(masterPort: number): Promise<RedisProcess> {
    const port = await freePort(BUS);
    const folder = mkdtempSync(path.join(this.folder, 'sentinel-'));
    const file = path.join(folder, 'sentinel.conf');
    const lines = [
      `sentinel monitor ${this.name} ${HOST} ${masterPort} 2`,
      // Ten times as long may a replica have been apart from the master when that dies: else none is ever promoted.
      `sentinel down-after-milliseconds ${this.name} 4000`,
      `sentinel failover-timeout ${this.name} 10000`,
    ];
    writeFileSync(file, `${lines.join('\n')}\n`);
    const server = new RedisProcess(port, folder, [file, '--sentinel']);
    await until('a Sentinel answers', () => server.redis.ping().catch(() => false), START);
    return server;
  }

  get url(): string {
    return `redis+sentinel://${this.sentinels.map(({ port }) => `${HOST}:${port}`).join(',')}/${this.name}`;
  }

  /** By the Sentinels' word, now. */
  async master(): Promise<RedisProcess> {
    const [first] = this.sentinels as [RedisProcess];
    const [, port] = (await first.redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', this.name)) as [string, string];
    return this.servers.find((server) => server.port === Number(port)) as RedisProcess;
  }

  get replicasOf(): (master: RedisProcess) => RedisProcess[] {
    return (master) => this.servers.filter((server) => server !== master && !this.sentinels.includes(server));
  }
}
