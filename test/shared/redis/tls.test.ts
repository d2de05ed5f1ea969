// TLS with a real server: an authority of the test's own, client certificates, and each way in which it does not come about.

import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { FarmError } from '../../../src/shared/errors.ts';
import { connectRedis, openRedis } from '../../../src/shared/redis/connect.ts';
import { type Signed, TestAuthority } from '../../support/certificates.ts';
import { freePort } from '../../support/port.ts';
import { startRedis, type TestRedis } from '../../support/redis-server.ts';

let authority: TestAuthority;
let stranger: TestAuthority;
let client: Signed;
let foreign: Signed;
const servers: TestRedis[] = [];
const ports = { open: 0, strict: 0, named: 0 };

async function start(signed: Signed, clients: 'yes' | 'no'): Promise<number> {
  const port = await freePort();
  const files = ['--tls-cert-file', signed.cert, '--tls-key-file', signed.key, '--tls-ca-cert-file', authority.ca];
  servers.push(await startRedis('--tls-port', String(port), ...files, '--tls-auth-clients', clients));
  return port;
}

beforeAll(async () => {
  authority = new TestAuthority();
  stranger = new TestAuthority();
  client = authority.sign('client', 'DNS:farm.test');
  foreign = stranger.sign('client', 'DNS:farm.test');
  const here = authority.sign('server', 'IP:127.0.0.1');
  ports.open = await start(here, 'no');
  ports.strict = await start(here, 'yes');
  ports.named = await start(authority.sign('named', 'DNS:redis.test'), 'no');
});
afterAll(async () => {
  for (const server of servers) await server.close();
  authority.close();
  stranger.close();
});

const url = (port: number, query: Record<string, string>): string =>
  `rediss://127.0.0.1:${port}?${new URLSearchParams(query)}`;

async function connected(address: string): Promise<string> {
  const { redis, place } = await connectRedis(readConfig({ REDIS_URL: address }));
  redis.disconnect();
  const patient = openRedis(place);
  try {
    return await patient.ping();
  } finally {
    patient.disconnect();
  }
}

describe('TLS', () => {
  it('comes about with the authority that is named', async () => {
    expect(await connected(url(ports.open, { ca: authority.ca }))).toBe('PONG');
  });

  it('comes about with a client certificate where the server wants one', async () => {
    expect(await connected(url(ports.strict, { ca: authority.ca, ...client }))).toBe('PONG');
  });

  it('comes about with a server of another name, where that is named', async () => {
    expect(await connected(url(ports.named, { ca: authority.ca, servername: 'redis.test' }))).toBe('PONG');
  });

  it.each<[string, () => string, RegExp]>([
    ['nobody vouches for the server', () => url(ports.open, {}), /self.signed|local issuer|verify/i],
    ['another authority is named', () => url(ports.open, { ca: stranger.ca }), /verify|issuer|signature|self.signed/i],
    ['the server is another one', () => url(ports.named, { ca: authority.ca }), /altnames/i],
    ['the server wants a certificate', () => url(ports.strict, { ca: authority.ca }), /certificate required/i],
    [
      'the server does not know who signed ours',
      () => url(ports.strict, { ca: authority.ca, ...foreign }),
      /unknown ca/i,
    ],
  ])('is refused where %s, and said to be', async (_, address, why) => {
    const fault = await refusal(address());
    expect(fault).toMatchObject({ code: 'redis_tls', exit: 3 });
    expect(fault.message).toMatch(why);
    expect(fault.hint).toMatch(/ca=FILE/);
  });

  test('asked of a server that has none, and none asked of one that has it', async () => {
    const port = await freePort();
    servers.push(await startRedis('--port', String(port)));
    expect(await refusal(url(port, {}))).toMatchObject({
      code: 'redis_tls',
      hint: expect.stringMatching(/redis:\/\//),
    });
    expect(await refusal(`redis://127.0.0.1:${ports.open}`)).toMatchObject({
      code: 'redis_unreachable',
      hint: expect.stringMatching(/rediss/),
    });
  });

  it('is not asked for with files that do not belong together', async () => {
    const fault = await refusal(url(ports.strict, { ca: authority.ca, cert: client.cert, key: foreign.key }));
    expect(fault).toMatchObject({ code: 'redis_tls_files', exit: 3 });
    const cut = path.join(authority.folder, 'cut.key');
    writeFileSync(cut, '-----BEGIN PRIVATE KEY-----\nMIGH\n');
    expect((await refusal(url(ports.strict, { cert: client.cert, key: cut }))).code).toBe('redis_tls_files');
    rmSync(cut);
  });
});

async function refusal(address: string): Promise<FarmError> {
  try {
    await connected(address);
  } catch (error) {
    if (error instanceof FarmError) return error;
    throw error;
  }
  throw new Error('it connected');
}
