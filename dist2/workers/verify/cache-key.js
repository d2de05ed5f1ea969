// The library's content-addressed key of a query: sha256 of one canonical JSON text. The farm's own key in Redis
// adds the upstream and an epoch to it.
import { createHash } from 'node:crypto';
import { dumpJson } from '../../shared/json/json.js';
/** The exact text that is hashed. */
export function cachePayload(platformId, query) {
    const payload = new Map([
        ['pid', platformId],
        ['q', query.query],
        ['facts', query.facts],
        ['relations', query.relations],
    ]);
    if (query.predictions !== null)
        payload.set('predictions', query.predictions);
    return dumpJson(payload, { sortKeys: true });
}
export function cacheKey(platformId, query) {
    return createHash('sha256').update(cachePayload(platformId, query)).digest('hex');
}
