// An upstream: base URL, platform and key, known to the fleet by a fingerprint. What Redis holds of it, for `status`,
// metrics and the log.

import { createHash } from 'node:crypto';
import { fingerprint } from '../../../shared/ledger/run-settings.ts';
import type { Redis } from '../../../shared/redis/client.ts';
import { clockOf } from '../../../shared/redis/nodes.ts';
import type { Platform } from '../platform-call.ts';

/** All of the fleet's asking lies in one hash slot. */
export const FLEET_KEY = 'farm:{verify}';

export interface UpstreamState {
  id: string;
  /** Without user and password. */
  baseUrl: string;
  platformId: string;
  /** Tells two keys apart, and is nothing to find one by. */
  keyFingerprint: string;
  breaker: 'closed' | 'open' | 'half_open';
  /** When the breaker came into this state (ms since 1970); null if it never changed. */
  sinceMs: number | null;
  /** The last failure that counted, '' if none. */
  reason: string;
  failuresInARow: number;
  /** Rest of a pause that the platform asked for. */
  rateLimitedForMs: number;
  /** Why the platform refuses key or configuration; null if it does not. */
  refused: string | null;
  /** Queries a call, as far as learned. */
  batchSize: number;
  /** There is no batch path. */
  singleCalls: boolean;
  /** Calls under way. */
  inFlight: number;
  waiting: number;
  counters: UpstreamCounters;
}

export interface UpstreamCounters {
  /** Distinct queries taken on, calls made, and queries that went in them (retries counted again). */
  queries: number;
  calls: number;
  items: number;
  cacheHits: number;
  /** Answers shared with an equal query that was under way. */
  joins: number;
  failures: number;
  rateLimited: number;
  opened: number;
}

export function upstreamId(platform: Platform): string {
  const { baseUrl, platformId, apiKey } = platform;
  return hash(JSON.stringify([baseUrl, String(platformId), fingerprint(apiKey)])).slice(0, 16);
}

/** 43 characters. An epoch sets equal queries of different runs or configurations apart: rulebooks are edited. */
export function flightKey(upstream: string, epoch: string, cacheKey: string): string {
  return hash(JSON.stringify([upstream, epoch, cacheKey]));
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Where the platform is, for people: no secrets. */
export function shownUrl(baseUrl: string): string {
  if (!URL.canParse(baseUrl)) return 'not an address';
  const url = new URL(baseUrl);
  return `${url.protocol}//${url.host}${url.pathname === '/' ? '' : url.pathname}`;
}

export async function readUpstreams(redis: Redis): Promise<UpstreamState[]> {
  const ids = (await redis.call('ZRANGE', `${FLEET_KEY}:upstreams`, '0', '-1')) as string[];
  const now = await clockOf(redis, FLEET_KEY);
  const states = await Promise.all(ids.map((id) => readUpstream(redis, id, now)));
  return states.filter((state) => state !== null);
}

async function readUpstream(redis: Redis, id: string, now: number): Promise<UpstreamState | null> {
  const key = `${FLEET_KEY}:u:${id}`;
  const [fields, inFlight, waiting] = await Promise.all([
    redis.hgetall(key),
    redis.zcount(`${key}:p`, String(now), '+inf'),
    redis.zcard(`${key}:w`),
  ]);
  if (fields.base === undefined) return null;
  const int = (name: string): number => Number(fields[name] ?? 0);
  return {
    id,
    baseUrl: fields.base,
    platformId: fields.platform ?? '',
    keyFingerprint: fields.key ?? '',
    breaker: fields.breaker === 'open' ? 'open' : fields.breaker === 'half' ? 'half_open' : 'closed',
    sinceMs: fields.since === undefined ? null : int('since'),
    reason: fields.why ?? '',
    failuresInARow: int('failures'),
    rateLimitedForMs: Math.max(0, int('pause') - now),
    refused: int('refused') > now ? (fields.refused_why ?? '') : null,
    batchSize: int('batch_till') > now ? int('batch') : BATCH,
    singleCalls: int('single_till') > now,
    inFlight,
    waiting,
    counters: {
      queries: int('c_queries'),
      calls: int('c_calls'),
      items: int('c_items'),
      cacheHits: int('c_hits'),
      joins: int('c_joins'),
      failures: int('c_failures'),
      rateLimited: int('c_rate_limited'),
      opened: int('c_opened'),
    },
  };
}

/** Queries a call, at most. */
export const BATCH = 50;
