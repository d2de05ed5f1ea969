// A run's status with what it waits for outside the house: the state of its verifier's breaker and rate pause.

import { readSettings } from '../shared/ledger/run-settings.ts';
import { type RunStatus, readStatus } from '../shared/ledger/run-status.ts';
import { runKey } from '../shared/ledger/script.ts';
import type { Redis } from '../shared/redis/client.ts';
import { readUpstreams, shownUrl } from '../workers/verify/fleet/upstream.ts';

export interface VerifierView {
  base_url: string;
  platform_id: string;
  breaker: 'closed' | 'open' | 'half_open';
  since: string | null;
  /** The last failure that counted. */
  reason: string;
  rate_limited_for_ms: number;
  refused: string | null;
  in_flight: number;
  waiting: number;
}

export type RunView = RunStatus & { verifier?: VerifierView };

/** Null if the ledger does not know the run. */
export async function readRun(redis: Redis, run: string): Promise<RunView | null> {
  const status = await readStatus(redis, run);
  if (status === null) return null;
  const text = await redis.hget(`${runKey(run)}:run`, 'settings');
  const settings = text === null ? null : readSettings(text);
  if (settings === null || settings.verifier === null) return status;
  const { baseUrl, platformId } = settings.verifier;
  const mine = (await readUpstreams(redis)).find(
    (u) =>
      u.baseUrl === shownUrl(baseUrl) &&
      u.platformId === String(platformId) &&
      u.keyFingerprint === settings.keyFingerprint,
  );
  if (mine === undefined) return status;
  const verifier: VerifierView = {
    base_url: mine.baseUrl,
    platform_id: mine.platformId,
    breaker: mine.breaker,
    since: mine.sinceMs === null ? null : new Date(mine.sinceMs).toISOString(),
    reason: mine.reason,
    rate_limited_for_ms: mine.rateLimitedForMs,
    refused: mine.refused,
    in_flight: mine.inFlight,
    waiting: mine.waiting,
  };
  return { ...status, verifier };
}
