// What a container's or a cluster's probes ask of a worker, over HTTP and on a port of its own: `/healthz` is answered as long
// as the process turns, `/readyz` says whether the farm sees it, and names what is missing. Nothing else is served.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Config } from '../shared/config.ts';
import { inputError, messageOf, missingError } from '../shared/errors.ts';
import { present, type RoleName } from '../shared/presence.ts';
import { openRedis, type RedisPlace } from '../shared/redis/connect.ts';
import { createDockerDriver } from '../workers/rollout/sandbox/docker.ts';

const REDIS_MS = 1_000;
/** Probes come every few seconds, from more than one place. */
const GOOD_FOR_MS = 2_000;

export interface Health {
  url: string;
  /** From now on it is not ready: what it has is brought to its end. */
  draining(): void;
  close(): Promise<void>;
}

export interface HealthOf {
  role: RoleName;
  /** Names of the processes that do its work now. */
  workers: () => readonly string[];
  config: Config;
  place: RedisPlace;
}

/** `PORT` or `HOST:PORT`; a port alone is of every address, as probes come from outside. */
export function readHealthAddress(text: string): { host: string; port: number } {
  const [, host, port] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535)
    throw inputError('health', `--health ${JSON.stringify(text)}: a port or HOST:PORT is wanted`);
  return { host: (host ?? '0.0.0.0').replace(/^\[|\]$/g, ''), port: Number(port) };
}

export async function serveHealth(at: { host: string; port: number }, of: HealthOf): Promise<Health> {
  const redis = openRedis(of.place, { commandTimeout: REDIS_MS, maxRetriesPerRequest: 0, enableOfflineQueue: false });
  const driver = of.role === 'rollout' ? createDockerDriver({ dockerHost: of.config.dockerHost }) : null;
  let draining = false;
  let latest: { at: number; missing: Promise<string[]> } | null = null;

  const look = async (): Promise<string[]> => {
    const [seen, engine] = await Promise.all([
      present(redis).then(
        (all) => (all.some((one) => of.workers().includes(one.worker)) ? null : 'this worker has not announced itself'),
        () => 'Redis does not answer',
      ),
      driver === null || driver.answers(),
    ]);
    return [...(seen === null ? [] : [seen]), ...(engine ? [] : ['the Docker engine does not answer'])];
  };
  const missing = async (): Promise<string[]> => {
    const now = performance.now();
    if (latest === null || now - latest.at > GOOD_FOR_MS) latest = { at: now, missing: look() };
    return [...(draining ? ['the worker drains'] : []), ...(await latest.missing)];
  };

  const server = http.createServer((request, response) => {
    const answer = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
    };
    const path = request.url?.split('?')[0];
    if (path === '/healthz') return answer(200, { status: 'ok', role: of.role, workers: of.workers() });
    if (path !== '/readyz')
      return answer(404, { error: { code: 'not_found', message: '/healthz and /readyz are here' } });
    missing().then(
      (what) => answer(what.length === 0 ? 200 : 503, { ready: what.length === 0, missing: what }),
      (error: unknown) => answer(503, { ready: false, missing: [messageOf(error)] }),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        missingError(
          'port_unusable',
          `cannot listen on ${at.host}:${at.port}: ${messageOf(error)}`,
          'choose another --health',
        ),
      ),
    );
    server.listen(at, () => resolve());
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${at.host}:${port}`,
    draining: () => {
      draining = true;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      redis.disconnect();
      await driver?.close();
    },
  };
}
