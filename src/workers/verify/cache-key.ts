// The library's content-addressed key of a query: sha256 of one canonical JSON text. The farm's own key in Redis
// adds the upstream and an epoch to it.

import { createHash } from 'node:crypto';
import { dumpJson } from '../../shared/json/json.ts';
import type { Value } from '../../shared/json/value.ts';
import type { ParsedCompletion } from './parser.ts';

type Query = Pick<ParsedCompletion, 'query' | 'facts' | 'relations' | 'predictions'>;

/** The exact text that is hashed. */
export function cachePayload(platformId: bigint, query: Query): string {
  const payload = new Map<string, Value>([
    ['pid', platformId],
    ['q', query.query],
    ['facts', query.facts],
    ['relations', query.relations],
  ]);
  if (query.predictions !== null) payload.set('predictions', query.predictions);
  return dumpJson(payload, { sortKeys: true });
}

export function cacheKey(platformId: bigint, query: Query): string {
  return createHash('sha256').update(cachePayload(platformId, query)).digest('hex');
}
