// A gateway of the test's own over real HTTP and real Redis, in front of a stand-in for AmberTrace.

import http from 'node:http';
import path from 'node:path';
import { openResults } from '../../src/cli/results-reader.ts';
import { finishedStatus } from '../../src/cli/stored-run.ts';
import { ScoreConfigs } from '../../src/gateway/configs.ts';
import { type GatewayLimits, openGateway } from '../../src/gateway/gateway.ts';
import { Keys } from '../../src/gateway/keys.ts';
import { GatewayServer } from '../../src/gateway/server.ts';
import { type Config, readConfig } from '../../src/shared/config.ts';
import { openLog } from '../../src/shared/log.ts';
import type { VerifierConfig } from '../../src/shared/spec/verifier-config.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';
import { FleetAsker } from '../../src/workers/verify/fleet/asker.ts';
import { readUpstreams } from '../../src/workers/verify/fleet/upstream.ts';
import { startRedis, type TestRedis } from './redis-server.ts';

export const FLOOR = -1;

export function verifierOf(baseUrl: string, more: Partial<VerifierConfig> = {}): VerifierConfig {
  return {
    platformId: 1n,
    baseUrl,
    parser: {
      kind: 'json_block',
      answerKey: 'classification',
      factsKey: 'facts',
      relationsKey: 'relations',
      queryTemplate: 'Classify: {facts}',
      broken: null,
    },
    weights: {
      format: 0.1,
      certified: 0.5,
      correctness: 1,
      graded: 0.3,
      rejected_penalty: 0.2,
      unsupported_penalty: 0.3,
      consistency: 0,
    },
    clip: [-1, 2],
    floor: FLOOR,
    batchSize: 32,
    maxConcurrency: 16,
    cache: true,
    requestsPerSecond: null,
    ...more,
  };
}

/** A completion about an applicant of this age: distinct ages are distinct queries. */
export function completion(age: number, answer = 'permit'): string {
  const facts = { age, annual_income: 20_000, resident: true, active_grant: false };
  return `<decision>${JSON.stringify({ classification: answer, facts })}</decision>`;
}

export interface TestGateway {
  url: string;
  port: number;
  server: GatewayServer;
  redis: TestRedis;
  config: Config;
  close(): Promise<void>;
}

export interface FixtureOptions {
  baseUrl: string;
  keys?: string | null;
  limits?: Partial<GatewayLimits>;
  verifier?: Partial<VerifierConfig>;
  callTimeoutMs?: number;
  apiKey?: string;
  redis?: TestRedis;
  adopts?: boolean;
  needsWorkers?: boolean;
  headersMs?: number;
}

export async function startGateway(options: FixtureOptions): Promise<TestGateway> {
  const redis = options.redis ?? (await startRedis());
  const apiKey = options.apiKey ?? 'at_gateway_test';
  const config: Config = {
    ...readConfig(),
    dataDir: redis.folder,
    store: path.join(redis.folder, 'store'),
    ambertraceApiKey: apiKey,
    ambertraceBaseUrl: options.baseUrl,
  };
  const log = openLog({ ...config, logLevel: config.logLevel ?? 'silent' }, 'gateway');
  const keys = new Keys(options.keys ?? null);
  const server = await GatewayServer.bind({
    host: '127.0.0.1',
    port: 0,
    keys,
    log,
    headersMs: options.headersMs ?? 20_000,
  });
  const opened = await openGateway(server, {
    config,
    configs: new ScoreConfigs([
      { name: 'grants', verifier: verifierOf(options.baseUrl, options.verifier), epoch: 'e1' },
      { name: 'elsewhere', verifier: verifierOf(options.baseUrl, { platformId: 99n, floor: -0.5 }), epoch: 'e2' },
    ]),
    place: redis.place,
    log,
    openAsker: ({ baseUrl, platformId, maxConcurrency }) =>
      new FleetAsker({
        redis: redis.redis,
        place: redis.place,
        upstream: { baseUrl, platformId, apiKey },
        limits: { concurrency: maxConcurrency, callTimeoutMs: options.callTimeoutMs ?? 30_000 },
        log,
      }),
    upstreams: readUpstreams,
    openDriver: createSubprocessDriver,
    openReader: (reading) => (run) => openResults(config, reading, run),
    finished: (run) => finishedStatus(config, run),
    adopts: options.adopts ?? false,
    needsWorkers: options.needsWorkers ?? false,
    ...(options.limits ? { limits: options.limits } : {}),
  });
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    server,
    redis,
    config,
    close: async () => {
      await server.drain(0, AbortSignal.abort());
      await opened.close();
      if (!options.redis) await redis.close();
    },
  };
}

export interface Reply {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely here
  json: any;
}

/** One request on a connection of its own unless an agent is given. */
export function call(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string | Buffer; agent?: http.Agent } = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = http.request(
      url,
      { method: options.method ?? 'GET', headers: options.headers ?? {}, agent: options.agent ?? false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          let json: unknown = null;
          try {
            json = JSON.parse(text);
          } catch {
            // not every answer is JSON
          }
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json });
        });
      },
    );
    request.on('error', reject);
    request.end(options.body);
  });
}

export function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> {
  const text = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return call(url, { method: 'POST', body: text, headers: { 'content-type': 'application/json', ...headers } });
}
