// Askers of one fleet, as several processes would have them: each with connections and an identity of its own.

import { test } from 'vitest';
import type { ValueMap } from '../../src/shared/json/value.ts';
import type { Redis } from '../../src/shared/redis/client.ts';
import { openRedis } from '../../src/shared/redis/connect.ts';
import { type AskOptions, FleetAsker } from '../../src/workers/verify/fleet/asker.ts';
import type { ExchangeLimits } from '../../src/workers/verify/fleet/exchange.ts';
import { FLEET_KEY, readUpstreams, type UpstreamState } from '../../src/workers/verify/fleet/upstream.ts';
import type { FleetAnswer } from '../../src/workers/verify/fleet/waits.ts';
import type { Query } from '../../src/workers/verify/wire-request.ts';
import { startRedis, type TestRedis } from './redis-server.ts';
import { type StubPlatform, startStub } from './stub-platform.ts';

export const API_KEY = 'at_canary_0123456789abcdef';

export interface LogLine {
  level: string;
  message: string;
  detail: string;
}

export interface Fleet {
  log: LogLine[];
  asker(more?: Partial<ExchangeLimits>, upstream?: { baseUrl?: string; apiKey?: string }): FleetAsker;
  close(): Promise<void>;
}

export function makeFleet(server: TestRedis, baseUrl: string, limits: Partial<ExchangeLimits> = {}): Fleet {
  const log: LogLine[] = [];
  const closing: (() => Promise<void>)[] = [];
  const note =
    (level: string) =>
    (fields: { detail?: string }, message: string): void => {
      log.push({ level, message, detail: fields.detail ?? '' });
    };
  return {
    log,
    asker: (more = {}, upstream = {}) => {
      const redis = openRedis(server.place);
      const asker = new FleetAsker({
        redis,
        place: server.place,
        upstream: { baseUrl, platformId: 1n, apiKey: API_KEY, ...upstream },
        limits: { concurrency: 4, ...limits, ...more },
        log: { info: note('info'), warn: note('warn'), debug: () => {} } as never,
        random: () => 0,
      });
      closing.push(async () => {
        await asker.close();
        redis.disconnect();
      });
      return asker;
    },
    close: async () => {
      await Promise.all(closing.map((close) => close()));
    },
  };
}

/** Tests that each have a Redis, a platform and a fleet of their own: none minds what runs beside it. */
export function fleetOfEach(limits: Partial<ExchangeLimits> = {}) {
  return test.extend<{ server: TestRedis; stub: StubPlatform; fleet: Fleet }>({
    // biome-ignore lint/correctness/noEmptyPattern: what it names is what it needs
    server: async ({}, use) => {
      const server = await startRedis();
      await use(server);
      await server.close();
    },
    // biome-ignore lint/correctness/noEmptyPattern: what it names is what it needs
    stub: async ({}, use) => {
      const stub = await startStub();
      await use(stub);
      await stub.close();
    },
    fleet: async ({ server, stub }, use) => {
      const fleet = makeFleet(server, stub.baseUrl, limits);
      await use(fleet);
      await fleet.close();
    },
  });
}

export function queryOf(text: string, facts: Record<string, bigint> = { age: 20n }): Query {
  return { query: text, facts: new Map(Object.entries(facts)), relations: null, predictions: null };
}

export function queriesOf(count: number, from = 0): Query[] {
  return Array.from({ length: count }, (_, i) => queryOf(`query ${from + i}`));
}

/** The only upstream, as the fleet knows it. */
export async function upstreamOf({ redis }: TestRedis): Promise<UpstreamState | undefined> {
  return (await readUpstreams(redis))[0];
}

/** An open breaker's rest is over, however long it was to be. */
export async function endRest({ redis }: { redis: Redis }): Promise<void> {
  for (const { id } of await readUpstreams(redis)) await redis.hset(`${FLEET_KEY}:u:${id}`, 'till', 1);
}

export const OPTIONS: AskOptions = { epoch: 'epoch-1', cache: true, deadlineMs: 60_000 };

/** `permit` for a verdict, else the kind. */
export function words(answers: readonly FleetAnswer[]): string[] {
  return answers.map((one) => (one.kind === 'verdict' ? String((one.data as ValueMap).get('decision')) : one.kind));
}

export function tally(texts: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const text of texts) counts[text] = (counts[text] ?? 0) + 1;
  return counts;
}
