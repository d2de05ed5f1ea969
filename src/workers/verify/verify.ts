// Completions to rewards through a verifier: parse, ask, report, shape. What a completion contains earns something,
// always; what the verifier's side does wrong is no result, and never shaped. The library shapes its floor reports,
// which then earn more than a certified wrong answer.

import { isMap, type Value, type ValueMap } from '../../shared/json/value.ts';
import type { Cause } from '../../shared/outcome.ts';
import { str } from '../../shared/python/text.ts';
import type { VerifierConfig } from '../../shared/spec/verifier-config.ts';
import { cacheKey } from './cache-key.ts';
import type { Answer } from './client.ts';
import { allFinite } from './finite.ts';
import { type ParsedCompletion, parseCompletionAside } from './parser.ts';
import type { Overruns } from './regex-parser.ts';
import { type AmberReport, reportFromDenial, reportFromResult } from './report.ts';
import { shape } from './shaper.ts';
import { breathe } from './turns.ts';
import type { Query } from './wire-request.ts';

export interface VerifyItem {
  /** Text, or a list of messages. */
  prompt: Value;
  completion: Value;
  /** `gold` and `criteria_gold` count. */
  metadata: Value;
}

export type VerifyResult =
  | {
      status: 'completed';
      reward: number;
      /** The library's breakdown with its `total`; empty where the floor stands in for one. */
      components: Record<string, number>;
      parsed: ParsedCompletion | null;
      report: AmberReport | null;
      cacheKey: string | null;
      /** The answer came from the cache, or from an equal query of the same call. */
      cached: boolean;
      /** Why the floor was given, where it was. */
      floored: string | null;
    }
  | {
      status: 'no_result';
      cause: Extract<Cause, 'verifier_unavailable' | 'misconfigured' | 'budget'>;
      detail: string;
      /** The upstream is shut for everybody (open breaker, long rate limit): a run waits for it instead. */
      held?: boolean;
    };

export interface VerifyDeps {
  /** One answer a query, in order; never throws. */
  ask(queries: readonly Query[]): Promise<(Answer & { cached?: boolean })[]>;
  /** Answers to keep by cache key; only verdicts and denials are put in. Used where the config says `cache`. */
  cache?: Map<string, Answer>;
  /** How many of `wanted` queries may still be asked, and takes them; the rest is `budget`. */
  budget?(wanted: number): number;
}

/** One result an item, in order. */
export async function verifyCompletions(
  config: VerifierConfig,
  items: readonly VerifyItem[],
  deps: VerifyDeps,
): Promise<VerifyResult[]> {
  const read: Read[] = [];
  const overruns: Overruns = { ms: 0 };
  for (const item of items) {
    read.push(await readItem(config, item, overruns));
    await breathe();
  }
  const kept = config.cache ? deps.cache : undefined;
  const wanted = new Map<string, Query>();
  for (const one of read) if (one.key !== null && one.parsed && !kept?.has(one.key)) wanted.set(one.key, one.parsed);
  const keys = [...wanted.keys()].slice(0, deps.budget ? deps.budget(wanted.size) : wanted.size);
  const given = keys.length > 0 ? await deps.ask(keys.map((key) => wanted.get(key) as Query)) : [];
  const answers = new Map(keys.map((key, i) => [key, given[i] as Answer & { cached?: boolean }]));
  for (const [key, answer] of answers)
    if (kept && (answer.kind === 'verdict' || answer.kind === 'denial')) kept.set(key, answer);
  const fresh = new Set(keys);
  const results: VerifyResult[] = [];
  for (const [i, one] of read.entries()) {
    const answer: (Answer & { cached?: boolean }) | undefined =
      one.key === null ? undefined : (answers.get(one.key) ?? kept?.get(one.key));
    const cached = one.key !== null && (!fresh.delete(one.key) || answer?.cached === true);
    results.push(resultOf(config, items[i] as VerifyItem, one, answer, cached));
    await breathe();
  }
  return results;
}

interface Read {
  parsed: ParsedCompletion | null;
  key: string | null;
  unreadable: string;
}

async function readItem(config: VerifierConfig, item: VerifyItem, overruns: Overruns): Promise<Read> {
  const completion = textOf(item.completion);
  if (completion === null) return { parsed: null, key: null, unreadable: 'the completion is no text' };
  const parsed = await parseCompletionAside(config.parser, textOf(item.prompt), completion, overruns);
  if ('unreadable' in parsed) return { parsed: null, key: null, unreadable: parsed.unreadable };
  await breathe();
  if (![parsed.facts, parsed.relations, parsed.proposedAnswer].every(allFinite))
    return { parsed: null, key: null, unreadable: 'the completion asserts a number that is not finite' };
  return { parsed, key: cacheKey(config.platformId, parsed), unreadable: '' };
}

function resultOf(
  config: VerifierConfig,
  item: VerifyItem,
  read: Read,
  answer: Answer | undefined,
  cached: boolean,
): VerifyResult {
  if (read.key === null) return floor(config, read, read.unreadable);
  if (!answer) return { status: 'no_result', cause: 'budget', detail: 'the run may not ask more queries' };
  if (answer.kind === 'unavailable')
    return {
      status: 'no_result',
      cause: 'verifier_unavailable',
      detail: answer.detail,
      ...(answer.held ? { held: true } : {}),
    };
  if (answer.kind === 'misconfigured') return { status: 'no_result', cause: 'misconfigured', detail: answer.detail };
  if (answer.kind === 'budget') return { status: 'no_result', cause: 'budget', detail: answer.detail };
  if (answer.kind === 'unreadable') return floor(config, read, 'the query is larger than the verifier reads');
  const report = answer.kind === 'verdict' ? reportFromResult(answer.data) : reportFromDenial(answer.denial);
  const metadata: ValueMap = isMap(item.metadata) ? item.metadata : new Map();
  const parsed = read.parsed as ParsedCompletion;
  const gold = metadata.get('gold') ?? null;
  const shaped = shape(config, parsed, report, gold, metadata.get('criteria_gold') ?? null);
  if (shaped.total === null) return { ...floor(config, read, shaped.refused ?? ''), report, cached };
  return {
    status: 'completed',
    reward: shaped.total,
    components: shaped.components,
    parsed,
    report,
    cacheKey: read.key,
    cached,
    floored: null,
  };
}

function floor(config: VerifierConfig, read: Read, floored: string): Extract<VerifyResult, { status: 'completed' }> {
  const { parsed, key } = read;
  return {
    status: 'completed',
    reward: config.floor,
    components: {},
    parsed,
    report: null,
    cacheKey: key,
    cached: false,
    floored,
  };
}

/** Text, or the contents of a list of messages; null for anything else, which is then unreadable. */
function textOf(value: Value): string | null {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isMap)) return null;
  return value.map((message) => str(message.has('content') ? (message.get('content') ?? null) : '')).join('');
}
