import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { describe, expect, it, type TestContext } from 'vitest';
import { type Config, readConfig } from '../../src/shared/config.ts';
import type * as Connect from '../../src/shared/redis/connect.ts';
import type * as Embedded from '../../src/shared/redis/embedded.ts';
import { ensureBuilt, ROOT } from '../support/built.ts';
import { TestFarm } from '../support/farm.ts';
import { killAll } from '../support/processes.ts';
import { until } from '../support/until.ts';

ensureBuilt();
const EMBEDDED = path.join(ROOT, 'dist/shared/redis/embedded.js');
const KEEPER = path.join(ROOT, 'dist/keeper/main.js');
// The compiled one: it starts the keeper as it lies beside it.
const { connectRedis } = (await import(path.join(ROOT, 'dist/shared/redis/connect.js'))) as typeof Connect;
const { ask, embeddedPaths, ensureEmbedded } = (await import(EMBEDDED)) as typeof Embedded;

interface Here {
  farm: TestFarm;
  config: Config;
  client(socket: string): Redis;
}

function newFarm({ onTestFinished }: TestContext): Here {
  const farm = new TestFarm();
  const clients: Redis[] = [];
  onTestFinished(async () => {
    for (const redis of clients) redis.disconnect();
    await farm.close();
  });
  const client = (socket: string): Redis => {
    const redis = new Redis({ path: socket, retryStrategy: () => 20, maxRetriesPerRequest: null });
    redis.on('error', () => {});
    clients.push(redis);
    return redis;
  };
  return { farm, config: readConfig({ FARM_DATA: farm.data }), client };
}
const server = (farm: TestFarm) => farm.processes.filter((p) => p.command.startsWith('redis-server'));
const keeper = (farm: TestFarm) => farm.processes.filter((p) => p.command.includes('keeper/main.js'));
const pidOf = (found: { pid: number }[]): number => {
  expect(found).toHaveLength(1);
  return (found[0] as { pid: number }).pid;
};

// Concurrent: most of it is waiting for a grace to end.
describe.concurrent('the embedded Redis', () => {
  it('is one for all commands that start at once on one folder, and ends after the last of them', async (context) => {
    const { farm, config, client } = newFarm(context);
    const commands = [farm.start('status', '--json'), farm.start('runs', '--json'), farm.start('status', '--json')];
    await until('a server', () => server(farm).length > 0);
    // It stays while we look.
    const last = client(await ensureEmbedded(config));
    await last.ping();
    for (const command of commands) expect(await command.ended).toMatchObject({ code: 0, stdout: '[]\n' });
    pidOf(server(farm));
    await until('keepers that came too late are gone', () => keeper(farm).length === 1);
    last.disconnect();
    await farm.gone();
  });

  it('stays as long as one client is connected, and is found by others', async (context) => {
    const { farm, config, client } = newFarm(context);
    const [one, other] = await Promise.all([ensureEmbedded(config), ensureEmbedded(config)]);
    expect(one).toBe(other);
    const first = client(one as string);
    await first.set('farm:test', 'x');
    const pid = pidOf(server(farm));
    // Beyond the keeper's grace (5 s) and its idle time (2 s).
    const since = performance.now();
    await until('the keeper could have ended it', () => performance.now() - since > 7_500, { everyMs: 250 });
    expect(await client(await ensureEmbedded(config)).get('farm:test')).toBe('x');
    expect(pidOf(server(farm))).toBe(pid);
  });

  it('is started again when it is killed, and has lost no write that it acknowledged', async (context) => {
    const { farm, config, client } = newFarm(context);
    const redis = client(await ensureEmbedded(config));
    const before = pidOf(server(farm));
    await redis.ping();
    let killed = false;
    let acknowledged = 0;
    const began = performance.now();
    const writing = (async () => {
      while (!killed) acknowledged = await redis.incr('farm:count');
    })();
    // In its first second a server that dies is taken for one that cannot start.
    await until('a second of writes', () => performance.now() - began > 1_500 && acknowledged > 50);
    process.kill(before, 'SIGKILL');
    killed = true;
    const atKill = acknowledged;
    await writing;
    await until('another server', () => server(farm).some((p) => p.pid !== before));
    expect(acknowledged).toBeGreaterThanOrEqual(atKill);
    // One more if the write that was under way was done and only its answer was lost: then it was sent again.
    expect(Number(await redis.get('farm:count'))).toBeGreaterThanOrEqual(acknowledged);
    expect(Number(await redis.get('farm:count'))).toBeLessThanOrEqual(acknowledged + 1);
  });

  it('goes when its keeper is killed, and the next command starts it anew with what it held', async (context) => {
    const { farm, config, client } = newFarm(context);
    const redis = client(await ensureEmbedded(config));
    await redis.set('farm:test', 'kept');
    const before = pidOf(server(farm));
    process.kill(pidOf(keeper(farm)), 'SIGKILL');
    redis.disconnect();
    await until('the server has gone with its keeper', () => server(farm).every((p) => p.pid !== before));
    expect(await client(await ensureEmbedded(config)).get('farm:test')).toBe('kept');
  });

  it('is the only one on its folder: a second keeper gives way, and the lock refuses a server of its own', async (context) => {
    const { farm, config, client } = newFarm(context);
    const redis = client(await ensureEmbedded(config));
    await redis.ping();
    const paths = embeddedPaths(config);
    const before = pidOf(server(farm));
    const second = farm.node(KEEPER, paths.data, `${paths.socket}.second`);
    expect(await second.ended).toMatchObject({ code: 0 });
    expect(await ask(`${paths.socket}.second`, 'PING', 1_000)).toBeNull();
    expect(spawnSync('flock', ['-n', paths.lock, 'true']).status).toBe(1);
    expect(pidOf(server(farm))).toBe(before);
  });

  it('does not hear a Ctrl-C that reaches the whole group of the command that started it', async (context) => {
    const { farm, config, client } = newFarm(context);
    const code = `
      const { ensureEmbedded } = await import(${JSON.stringify(EMBEDDED)});
      const { connect } = await import('node:net');
      const { readConfig } = await import(${JSON.stringify(path.join(ROOT, 'dist/shared/config.js'))});
      connect(await ensureEmbedded(readConfig()));
      console.log('connected');`;
    const command = farm.node('--input-type=module', '-e', code);
    await until('the command is connected', () => command.stdout.includes('connected'));
    const redis = client(embeddedPaths(config).socket);
    await redis.ping();
    const before = pidOf(server(farm));
    command.signalGroup('SIGINT');
    await command.ended;
    expect(await redis.ping()).toBe('PONG');
    expect(pidOf(server(farm))).toBe(before);
  });

  it('is started anew by the commands that are connected when its keeper is killed', async (context) => {
    const { farm, config } = newFarm(context);
    const { redis } = await connectRedis(config);
    context.onTestFinished(() => redis.disconnect());
    await redis.set('farm:test', 'kept');
    const before = pidOf(server(farm));
    process.kill(pidOf(keeper(farm)), 'SIGKILL');
    await until('the server has gone with its keeper', () => server(farm).every((p) => p.pid !== before));
    expect(await redis.get('farm:test')).toBe('kept');
    await until('one keeper is left', () => keeper(farm).length === 1);
  });

  it('is found, or started anew, by commands that come while it is ending', async (context) => {
    const { farm, config } = newFarm(context);
    for (let round = 0; round < 5; round++) {
      const first = await connectRedis(config);
      first.redis.disconnect();
      killAll(keeper(farm), 'SIGTERM');
      const connected = await Promise.all(Array.from({ length: 3 }, () => connectRedis(config)));
      for (const { redis } of connected) {
        expect(await redis.ping()).toBe('PONG');
        redis.disconnect();
      }
      expect(new Set([first, ...connected].map((c) => c.farmId)).size).toBe(1);
    }
  });

  it('is reached through a socket in a folder that only its user may enter, and through no port', async (context) => {
    const { config, client } = newFarm(context);
    const socket = await ensureEmbedded(config);
    expect(statSync(path.dirname(socket)).mode & 0o777).toBe(0o700);
    expect(statSync(config.runtimeDir).mode & 0o777).toBe(0o700);
    expect(Buffer.byteLength(socket)).toBeLessThan(108);
    const redis = client(socket);
    expect(await redis.config('GET', 'port')).toMatchObject(['port', '0']);
    expect(await redis.config('GET', 'appendfsync')).toMatchObject(['appendfsync', 'always']);
  });

  it('of another folder is another one, also for a folder of a long name', (context) => {
    const { farm, config } = newFarm(context);
    const long = readConfig({ FARM_DATA: path.join(farm.data, 'x'.repeat(120)) });
    const names = [embeddedPaths(config).socket, embeddedPaths(long).socket];
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(Buffer.byteLength(name)).toBeLessThan(108);
  });

  it('is the same through another path to the folder', (context) => {
    const { farm, config } = newFarm(context);
    const roundabout = { ...config, dataDir: path.join(farm.data, '..', path.basename(farm.data)) };
    expect(embeddedPaths(roundabout).socket).toBe(embeddedPaths(config).socket);
  });

  it('is not looked for in a folder that others may write, or that is another user’s', (context) => {
    const { config } = newFarm(context);
    const runtimeDir = mkdtempSync(path.join(tmpdir(), 'farm-test-runtime-'));
    context.onTestFinished(() => rmSync(runtimeDir, { recursive: true }));
    const refused = expect.objectContaining({ exit: 3, code: 'runtime_folder' });
    chmodSync(runtimeDir, 0o777);
    expect(() => embeddedPaths({ ...config, runtimeDir })).toThrow(refused);
    chmodSync(runtimeDir, 0o700);
    expect(embeddedPaths({ ...config, runtimeDir }).socket).toContain(runtimeDir);
    if (process.getuid?.() === 0) {
      chownSync(runtimeDir, 12_345, 12_345);
      expect(() => embeddedPaths({ ...config, runtimeDir })).toThrow(refused);
    }
  });
});

describe('a data folder that cannot be written', () => {
  it('is exit 3 with what to do, before anything is started', async (context) => {
    const { farm } = newFarm(context);
    farm.env.FARM_DATA = path.join(farm.file('a-file', 'x'), 'data');
    const ended = await farm.run('status');
    expect(ended).toMatchObject({ code: 3, stdout: '' });
    expect(ended.stderr).toMatch(/cannot be written.*\n.*FARM_DATA/);
  });
});
