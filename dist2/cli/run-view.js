// A run's status with what it waits for outside the house: the state of its verifier's breaker and rate pause.
import { readSettings } from '../shared/ledger/run-settings.js';
import { readStatus } from '../shared/ledger/run-status.js';
import { runKey } from '../shared/ledger/script.js';
import { readUpstreams, shownUrl } from '../workers/verify/fleet/upstream.js';
/** Null if the ledger does not know the run. */
export async function readRun(redis, run) {
    const status = await readStatus(redis, run);
    if (status === null)
        return null;
    const text = await redis.hget(`${runKey(run)}:run`, 'settings');
    const settings = text === null ? null : readSettings(text);
    if (settings === null || settings.verifier === null)
        return status;
    const { baseUrl, platformId } = settings.verifier;
    const mine = (await readUpstreams(redis)).find((u) => u.baseUrl === shownUrl(baseUrl) &&
        u.platformId === String(platformId) &&
        u.keyFingerprint === settings.keyFingerprint);
    if (mine === undefined)
        return status;
    const verifier = {
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
