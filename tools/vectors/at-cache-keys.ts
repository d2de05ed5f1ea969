// A query's cache key and the exact text that is hashed.

import { isMap, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { cacheKey, cachePayload } from '../../src/workers/verify/cache-key.ts';
import { parseCompletion } from '../../src/workers/verify/parser.ts';
import type { Query } from '../../src/workers/verify/wire-request.ts';
import { parsedFromValue, parserConfig } from './reference-values.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, judge, notRun, type Verdict } from './verdict.ts';

export function runCacheKey(one: VectorCase): Verdict {
  if (hasOtherKeys(one.in)) return notRun('facts come from JSON: their keys are text');
  const platform = one.in.get('platform_id') as bigint;
  let query: Query | null;
  if (one.in.has('completion')) {
    const config = parserConfig(one.in.get('parser') as string, new Map());
    query = config && parseCompletion(config, null, one.in.get('completion') as string);
    if (query && query.query !== one.out.get('query')) return differ(`another query: ${query.query}`);
  } else query = parsedFromValue(one.in);
  if (!query) return differ('the completion does not parse');
  const same =
    sameAsReference(cachePayload(platform, query), one.out.get('payload') as Value) &&
    cacheKey(platform, query) === one.out.get('sha256');
  return judge(one, same, `another payload: ${cachePayload(platform, query).slice(0, 200)}`);
}

/** A Python dict whose keys are no text. */
function hasOtherKeys(value: Value): boolean {
  if (Array.isArray(value)) return value.some(hasOtherKeys);
  if (!isMap(value)) return false;
  return value.has('$dict') || [...(value as ValueMap).values()].some(hasOtherKeys);
}
