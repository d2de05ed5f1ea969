// What probes of a container or a cluster learn from a worker.

import { execFile } from 'node:child_process';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { readHealthAddress, serveHealth } from '../../src/cli/worker-health.ts';
import { readConfig } from '../../src/shared/config.ts';
import { announce } from '../../src/shared/presence.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const HEALTH = fileURLToPath(new URL('../../infra/images/health.mjs', import.meta.url));
const LOOPBACK = { host: '127.0.0.1', port: 0 };

async function ready(url: string): Promise<{ status: number; missing: string[] }> {
  const answer = await fetch(`${url}/readyz`);
  return { status: answer.status, missing: ((await answer.json()) as { missing: string[] }).missing };
}

/** A worker that nobody has announced yet. */
async function verifyWorker() {
  const server = await startRedis();
  const me = { role: 'verify' as const, realm: 'shared', worker: 'one', slots: { verify: 4 } };
  const health = await serveHealth(LOOPBACK, {
    role: me.role,
    workers: () => [me.worker],
    config: readConfig({}),
    place: server.place,
  });
  return { server, me, health };
}

describe('a worker’s health', () => {
  it('is ready when the farm sees it, and not when Redis is away or it drains', async ({ onTestFinished }) => {
    const { server, me, health } = await verifyWorker();
    onTestFinished(async () => {
      await health.close();
      await server.close();
    });
    expect((await fetch(`${health.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${health.url}/`)).status).toBe(404);
    await until('it is known not to be seen', async () =>
      (await ready(health.url)).missing.join().includes('announced'),
    );
    const presence = await announce(server.redis, me);
    await until('it is ready', async () => (await ready(health.url)).status === 200);
    await server.kill();
    await until('Redis is missed', async () => (await ready(health.url)).missing.join() === 'Redis does not answer');
    expect((await fetch(`${health.url}/healthz`)).status).toBe(200);
    await server.restart();
    await until('it is ready again', async () => (await ready(health.url)).status === 200);
    health.draining();
    expect(await ready(health.url)).toEqual({ status: 503, missing: ['the worker drains'] });
    await presence.stop();
  });

  it('of a rollout worker needs an engine that answers', async ({ onTestFinished }) => {
    const server = await startRedis();
    const me = { role: 'rollout' as const, realm: 'shared', worker: 'one', slots: { rollout: 4 } };
    const config = readConfig({ DOCKER_HOST: `unix://${server.folder}/no-engine.sock` });
    const health = await serveHealth(LOOPBACK, {
      role: me.role,
      workers: () => [me.worker],
      config,
      place: server.place,
    });
    const presence = await announce(server.redis, me);
    onTestFinished(async () => {
      await presence.stop();
      await health.close();
      await server.close();
    });
    await until('only the engine is missing', async () => {
      const { missing } = await ready(health.url);
      return missing.join() === 'the Docker engine does not answer';
    });
  });

  it('is asked for by a container’s check, over a port or a socket', async ({ onTestFinished }) => {
    const { server, health } = await verifyWorker();
    const socket = `${server.folder}/other.sock`;
    const other = http.createServer((_, response) => response.end('here')).listen(socket);
    onTestFinished(async () => {
      await health.close();
      other.close();
      await server.close();
    });
    const check = (address: string): Promise<{ code: number; text: string }> =>
      new Promise((resolve) => {
        execFile(process.execPath, [HEALTH, address], (error, text) =>
          resolve({ code: typeof error?.code === 'number' ? error.code : 0, text: text.trim() }),
        );
      });
    expect(await check(`${health.url}/healthz`)).toMatchObject({ code: 0 });
    expect(await check(`${health.url}/readyz`)).toMatchObject({ code: 1, text: expect.stringContaining('503') });
    expect(await check(`unix:${socket}:/_ping`)).toEqual({ code: 0, text: '200 here' });
    expect(await check(`unix:${server.folder}/nothing.sock:/`)).toMatchObject({ code: 1 });
    expect(await check('http://127.0.0.1:1/healthz')).toMatchObject({ code: 1 });
  });

  it('is served where it is asked for', () => {
    expect(readHealthAddress('8788')).toEqual({ host: '0.0.0.0', port: 8788 });
    expect(readHealthAddress('127.0.0.1:1')).toEqual({ host: '127.0.0.1', port: 1 });
    expect(readHealthAddress('[::]:80')).toEqual({ host: '::', port: 80 });
    for (const text of ['', 'x', '70000', 'host:', '80:x'])
      expect(() => readHealthAddress(text), text).toThrow(/--health/);
  });
});
