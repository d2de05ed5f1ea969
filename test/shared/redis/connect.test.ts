import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, test } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { FarmError } from '../../../src/shared/errors.ts';
import { connectRedis, locateRedis, openRedis } from '../../../src/shared/redis/connect.ts';
import { freePort } from '../../support/port.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

const PASSWORD = 'pass@word/with%signs';
const ENCODED = encodeURIComponent(PASSWORD);

let server: TestRedis;
let port: number;
beforeAll(async () => {
  port = await freePort();
  server = await startRedis('--port', String(port), '--bind', '127.0.0.1');
});
afterAll(() => server.close());
afterEach(async () => {
  await server.redis.config('SET', 'requirepass', '');
  await server.redis.config('SET', 'maxmemory-policy', 'noeviction');
});

const at = (url: string) => readConfig({ REDIS_URL: url });

/** What connecting says, all of it; nothing of the password may be in it. */
async function refused(url: string): Promise<{ code: string; exit: number; message: string; hint: string }> {
  try {
    const { redis } = await connectRedis(at(url));
    redis.disconnect();
  } catch (error) {
    expect(error).toBeInstanceOf(FarmError);
    const { code, exit, message, hint = '' } = error as FarmError;
    for (const secret of [PASSWORD, ENCODED, 'pass@word', 'with%signs'])
      expect(`${message} ${hint}`).not.toContain(secret);
    return { code, exit, message, hint };
  }
  throw new Error('it connected');
}

describe('a Redis that can hold a ledger', () => {
  it('is found by URL and by socket, and keeps the farm’s id', async () => {
    const found = [];
    for (const url of [`redis://127.0.0.1:${port}`, `unix://${path.join(server.folder, 'redis.sock')}`]) {
      const { redis, farmId, place } = await connectRedis(at(url));
      expect(await redis.ping()).toBe('PONG');
      expect(place).toMatchObject({ embedded: false, address: url });
      redis.disconnect();
      found.push(farmId);
    }
    expect(found[0]).toMatch(/^[0-9a-f]{16}$/);
    expect(found[1]).toBe(found[0]);
  });

  it('is entered with a password of any signs, which no message names', async () => {
    await server.redis.config('SET', 'requirepass', PASSWORD);
    for (const url of [`redis://:${ENCODED}@127.0.0.1:${port}`, `redis://default:${ENCODED}@127.0.0.1:${port}/0`]) {
      const { redis, place } = await connectRedis(at(url));
      expect(await redis.ping()).toBe('PONG');
      expect(place.address).not.toMatch(/pass|default/);
      redis.disconnect();
    }
  });
});

describe('a Redis that may lose what it acknowledged', () => {
  it.each([
    ['keeps no append-only file', ['--appendonly', 'no'], /no append-only file/],
    ['writes it every second', ['--appendfsync', 'everysec'], /appendfsync/],
  ])('is used with a warning: it %s', async (_, options, warning) => {
    const own = await startRedis(...options);
    try {
      const { redis, warnings } = await connectRedis(at(`unix://${path.join(own.folder, 'redis.sock')}`));
      redis.disconnect();
      expect(warnings).toEqual([expect.stringMatching(warning)]);
    } finally {
      await own.close();
    }
  });

  it('is none of those that run as ours does', async () => {
    const { redis, warnings } = await connectRedis(at(`redis://127.0.0.1:${port}`));
    redis.disconnect();
    expect(warnings).toEqual([]);
  });
});

describe('refused with exit 3 and the next step', () => {
  test('nobody listens', async () => {
    const nobody = await freePort();
    const said = await refused(`redis://:${ENCODED}@127.0.0.1:${nobody}`);
    expect(said).toMatchObject({ code: 'redis_unreachable', exit: 3 });
    expect(said.message).toContain(`127.0.0.1:${nobody}`);
    expect(said.hint).toMatch(/REDIS_URL/);
  });

  test('somebody listens and says nothing', async () => {
    const mute = net.createServer(() => {});
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', () => resolve()));
    const said = await refused(`redis://127.0.0.1:${(mute.address() as AddressInfo).port}`);
    expect(said).toMatchObject({ code: 'redis_unreachable', exit: 3 });
    mute.close();
  });

  test.each([
    ['none is given', 'redis://127.0.0.1'],
    ['a wrong one is given', `redis://:${ENCODED}@127.0.0.1`],
    ['one for an unknown user is given', `redis://nobody:${ENCODED}@127.0.0.1`],
  ])('it wants a password and %s', async (_, url) => {
    await server.redis.config('SET', 'requirepass', 'another');
    const said = await refused(`${url}:${port}`);
    expect(said).toMatchObject({ code: 'redis_auth', exit: 3 });
    expect(said.hint).toMatch(/REDIS_URL/);
  });

  test.each(['allkeys-lru', 'volatile-ttl'])('it may evict keys (%s)', async (policy) => {
    await server.redis.config('SET', 'maxmemory-policy', policy);
    const said = await refused(`redis://127.0.0.1:${port}`);
    expect(said).toMatchObject({ code: 'redis_policy', exit: 3 });
    expect(said.message).toContain(policy);
    expect(said.hint).toContain('noeviction');
  });

  test('it is a replica', async () => {
    const replica = await startRedis('--replicaof', `127.0.0.1 ${await freePort()}`);
    try {
      expect(await refused(`unix://${path.join(replica.folder, 'redis.sock')}`)).toMatchObject({
        code: 'redis_replica',
        exit: 3,
      });
    } finally {
      await replica.close();
    }
  });

  test.each([
    ['6', '%1\r\n$5\r\nproto\r\n:3\r\n', '6.2.14'],
    ['5, which has not heard of RESP3', "-ERR unknown command 'HELLO'\r\n", '7.0'],
  ])('it is of version %s', async (_, hello, said) => {
    const info = '# Server\r\nredis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\nrole:master\r\n';
    const answers: Record<string, string> = { info: `$${info.length}\r\n${info}\r\n`, hello, client: '+OK\r\n' };
    const old = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        for (const [, name = ''] of chunk.toString().matchAll(/\*\d+\r\n\$\d+\r\n([a-z]+)\r\n/gi))
          socket.write(answers[name.toLowerCase()] ?? '-ERR unknown command\r\n');
      });
    });
    await new Promise<void>((resolve) => old.listen(0, '127.0.0.1', () => resolve()));
    const told = await refused(`redis://127.0.0.1:${(old.address() as AddressInfo).port}`);
    expect(told).toMatchObject({ code: 'redis_version', exit: 3 });
    expect(told.message).toContain(said);
    old.close();
  });

  test.each([
    ['is no URL', `127.0.0.1:6379 ${PASSWORD}`, /redis:\/\/:password@host/],
    ['has another scheme', `https://:${ENCODED}@127.0.0.1`, /redis:\/\/:password@host/],
    ['names a database that is no number', 'redis://127.0.0.1:1/x', /\/0/],
    ['has a password with a bare slash', `redis://user:12/${PASSWORD}@127.0.0.1`, /%2F/],
    ['has a password with a bare percent sign', 'redis://:100%@127.0.0.1', /%25/],
  ])('REDIS_URL %s', async (_, url, hint) => {
    const said = await refused(url);
    expect(said).toMatchObject({ code: 'redis_url', exit: 3 });
    expect(said.hint).toMatch(hint);
  });
});

describe('an address', () => {
  it('shows nothing of a password that holds an @', async () => {
    const place = await locateRedis(at('redis://user:first@second@localhost:6400/2'));
    expect(place.address).toBe('redis://localhost:6400/2');
    expect(place.options).toMatchObject({ host: 'localhost', port: 6400, db: 2, password: 'first@second' });
  });
});

describe('a patient connection', () => {
  it('waits through a restart of Redis and goes on', async () => {
    const own = await startRedis();
    const redis = openRedis(own.place);
    try {
      await redis.set('farm:test', 'kept');
      await own.kill();
      const asked = redis.get('farm:test');
      await own.restart();
      expect(await asked).toBe('kept');
    } finally {
      redis.disconnect();
      await own.close();
    }
  });
});
