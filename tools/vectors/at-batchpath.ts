// The batch path over a scripted platform: payloads, chunks, order and keys are the library's; what an answer means is
// ours. A case is equal where everything is: requests, reports, rewards, what is cached. Where not, its keys and first
// payloads must be equal all the same, and a rule must cover the rest.

import { createHash } from 'node:crypto';
import { dumpJson } from '../../src/shared/json/json.ts';
import { isMap, pyEqual, type Value, type ValueMap } from '../../src/shared/json/value.ts';
import { toFloat } from '../../src/shared/python/number.ts';
import type { VerifierConfig } from '../../src/shared/spec/verifier-config.ts';
import { cacheKey } from '../../src/workers/verify/cache-key.ts';
import { type Answer, VerifierClient } from '../../src/workers/verify/client.ts';
import { parseCompletion } from '../../src/workers/verify/parser.ts';
import { type AmberReport, reportFromDenial, reportFromResult } from '../../src/workers/verify/report.ts';
import { verifyCompletions } from '../../src/workers/verify/verify.ts';
import { batchBody, type Query } from '../../src/workers/verify/wire-request.ts';
import { shaperConfig, verifierConfig } from './reference-values.ts';
import { ScriptedPlatform, type SentRequest } from './scripted-platform.ts';
import { sameAsReference, type VectorCase } from './vector-file.ts';
import { differ, EQUAL, judge, notRun, type Runner, type Verdict } from './verdict.ts';

const PLATFORM = 44n;
const BATCH = 50;

export function batchPathRunner(): Runner {
  const platform = new ScriptedPlatform();
  let url: Promise<string> | null = null;
  return {
    async run(one) {
      url ??= platform.listen();
      return new BatchPathCase(one, platform, await url).run();
    },
    close: async () => {
      if (url) await platform.close();
    },
  };
}

class BatchPathCase {
  private readonly one: VectorCase;
  private readonly given: ValueMap;
  private readonly platform: ScriptedPlatform;
  private readonly client: VerifierClient;
  private readonly config: VerifierConfig;
  private readonly cache = new Map<string, Answer>();
  /** What is not as in the reference, by op. */
  private readonly wrong: string[] = [];

  constructor(one: VectorCase, platform: ScriptedPlatform, url: string) {
    this.one = one;
    this.given = one.in.get('config') as ValueMap;
    this.platform = platform;
    platform.batchPath = this.given.get('query_batch') !== false;
    const shaper = this.given.get('shaper');
    this.config = {
      ...verifierConfig({}, (this.given.get('parser') ?? 'json_block') as string),
      ...(isMap(shaper) ? shaperConfig(shaper) : {}),
      floor: toFloat(this.given.get('floor') ?? -1) ?? -1,
      cache: this.given.get('cache') !== false,
    };
    this.client = new VerifierClient({
      baseUrl: this.given.has('client_raises') ? 'no address' : url,
      platformId: PLATFORM,
      apiKey: 'at_reference_cases',
      concurrency: 1,
      tries: Number(this.given.get('max_retries') ?? 2n) + 1,
      sleep: async () => {},
    });
  }

  async run(): Promise<Verdict> {
    if (this.given.get('use_projection') === false)
      return notRun('an option that no config names: the projection is always sent');
    if (Number(this.given.get('max_retries') ?? 0n) < 0)
      return notRun('a count of retries that no config names, and that makes no call');
    try {
      const ops = this.one.in.get('script') as ValueMap[];
      for (const [i, op] of ops.entries()) {
        const log = (this.one.out.get('log') as ValueMap[])[i] as ValueMap;
        const fault = await this.op(op, log);
        if (fault) return differ(`op ${i}: ${fault}`);
      }
    } finally {
      this.client.close();
    }
    if (this.wrong.length === 0) return EQUAL;
    return judge(this.one, false, this.wrong.join('; '), [
      'equal-queries-once',
      'batch-item-meaning',
      'garbage-is-a-failure',
      'failures-mean-the-same',
      'no-result-is-not-shaped',
    ]);
  }

  /** What no rule excuses, if anything; the rest goes into `wrong`. */
  private async op(op: ValueMap, log: ValueMap): Promise<string | null> {
    if (op.get('op') === 'advance') return null;
    this.platform.requests.length = 0;
    this.platform.script = [...((op.get('upstream') ?? []) as ValueMap[])];
    const queries = this.queriesOf(op);
    const keys = queries.map((query) => (query ? cacheKey(PLATFORM, query) : null));
    if (!sameKeys(keys, log)) return 'other keys';
    if (!sameFirstPayloads(queries, log)) return 'other payloads or chunks';
    const answers =
      op.get('op') === 'reward' ? await this.reward(op, log, queries, keys) : await this.ask(queries, keys);
    const theirs = log.get('requests') as Value;
    if (!sameRequests(this.platform.requests, theirs)) this.wrong.push('other requests');
    const reports = queries.map((query, i) => (query ? reportText(answers.get(keys[i] as string)) : '-'));
    if (log.has('reports') && !sameReports(reports, log.get('reports') as Value))
      this.wrong.push(`reports ${reports.join(', ').slice(0, 200)}`);
    const cached = keys.map((key) => (key === null ? '-' : this.cache.has(key) ? '1' : '0')).join('');
    if (cached !== log.get('cached_after')) this.wrong.push(`cached ${cached}`);
    return null;
  }

  private async reward(
    op: ValueMap,
    log: ValueMap,
    queries: (Query | null)[],
    keys: (string | null)[],
  ): Promise<Map<string, Answer>> {
    const completions = op.get('completions') as Value[];
    const prompts = op.get('prompts') as Value[];
    const metadata = (op.get('metadata') ?? completions.map(() => null)) as Value[];
    const items = completions.map((completion, i) => ({
      prompt: prompts[i] ?? '',
      completion,
      metadata: metadata[i] ?? null,
    }));
    const seen = new Map<string, Answer>();
    const results = await verifyCompletions(this.config, items, {
      ask: async (asked) => {
        const answers = await this.client.ask(asked);
        for (const [i, query] of asked.entries())
          seen.set(cacheKey(this.config.platformId, query), answers[i] as Answer);
        return answers;
      },
      cache: this.cache,
    });
    const rewards: Value = results.map((result) => (result.status === 'completed' ? result.reward : null));
    const theirs = log.get('rewards') as Value[] | undefined;
    // Short metadata drops rewards there; here it is a list a caller may not send.
    if (!theirs || !pyEqual(rewards.slice(0, Math.min(prompts.length, metadata.length)), theirs))
      this.wrong.push(`rewards ${rewards}`);
    return new Map(
      queries.flatMap((query, i) => {
        const key = keys[i];
        const answer = query && key ? (seen.get(key) ?? this.cache.get(key)) : undefined;
        return key && answer ? [[key, answer] as const] : [];
      }),
    );
  }

  private async ask(queries: (Query | null)[], keys: (string | null)[]): Promise<Map<string, Answer>> {
    const answers = new Map<string, Answer>();
    const wanted = new Map<string, Query>();
    for (const [i, query] of queries.entries()) {
      const key = keys[i];
      if (!query || !key) continue;
      const known = this.config.cache ? this.cache.get(key) : undefined;
      if (known) answers.set(key, known);
      else wanted.set(key, query);
    }
    const given = await this.client.ask([...wanted.values()]);
    for (const [i, key] of [...wanted.keys()].entries()) {
      const answer = given[i] as Answer;
      answers.set(key, answer);
      if (this.config.cache && (answer.kind === 'verdict' || answer.kind === 'denial')) this.cache.set(key, answer);
    }
    return answers;
  }

  /** What an op asks, null where the completion did not parse. */
  private queriesOf(op: ValueMap): (Query | null)[] {
    if (op.get('op') === 'reward')
      return (op.get('completions') as Value[]).map((completion) =>
        typeof completion === 'string' ? parseCompletion(this.config.parser, null, completion) : null,
      );
    const plain = (facts: ValueMap): Query => ({
      query: 'Open the sluice?',
      facts,
      relations: null,
      predictions: null,
    });
    const gaps = (op.get('null_at') ?? []) as bigint[];
    if (op.has('numbered'))
      return Array.from({ length: Number(op.get('numbered')) }, (_, i) =>
        gaps.includes(BigInt(i)) ? null : plain(new Map([['n', BigInt(i)]])),
      );
    const items = op.get('op') === 'call' ? [op.get('item') as Value] : (op.get('items') as Value[]);
    return items.map((item) => {
      if (typeof item === 'string') return plain(new Map([['item', item]]));
      if (!isMap(item)) return null;
      return {
        query: (item.get('query') ?? 'Open the sluice?') as string,
        facts: (item.get('facts') ?? new Map()) as ValueMap,
        relations: (item.get('relations') ?? null) as ValueMap | null,
        predictions: (item.get('predictions') ?? null) as ValueMap | null,
      };
    });
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function sameKeys(keys: (string | null)[], log: ValueMap): boolean {
  if (log.has('keys')) return sameAsReference(keys, log.get('keys') as Value);
  return !log.has('keys_sha256') || sha256(keys.map((key) => key ?? '-').join('\n')) === log.get('keys_sha256');
}

/** The reference's requests without its retries. */
function firstRequests(requests: Value): ValueMap[] {
  return Array.isArray(requests) ? requests.filter(isMap).filter((request) => !request.has('repeats_previous')) : [];
}

/** The payloads that the library made are ours, chunk for chunk; it may have stopped before the end. */
function sameFirstPayloads(queries: (Query | null)[], log: ValueMap): boolean {
  const hit = (log.get('hit_before') ?? '') as string;
  const missing = queries.filter((query, i): query is Query => query !== null && hit[i] !== '1');
  const theirs = firstRequests(log.get('requests') as Value).filter((request) => request.get('call') !== 'query');
  return theirs.every((request, i) => {
    const body = batchBody(missing.slice(i * BATCH, (i + 1) * BATCH));
    return sameQueries(body.get('queries') as Value, request.get('queries') as Value);
  });
}

function sameQueries(ours: Value, theirs: Value): boolean {
  if (isMap(theirs)) return sha256(dumpJson(ours)) === theirs.get('json_sha256');
  return dumpJson(ours) === dumpJson(theirs);
}

function sameRequests(ours: readonly SentRequest[], theirs: Value): boolean {
  if (!Array.isArray(theirs)) return isMap(theirs) && pyEqual(theirs.get('n') ?? null, BigInt(ours.length));
  let previous: Value = null;
  return (
    ours.length === theirs.length &&
    ours.every((request, i) => {
      const expected = theirs[i] as ValueMap;
      previous = expected.has('repeats_previous') ? previous : expected;
      return sameRequest(request, previous as ValueMap);
    })
  );
}

function sameRequest({ batch, body }: SentRequest, theirs: ValueMap): boolean {
  if (theirs.get('call') === 'query') {
    // A single question goes by the batch path too, where there is one.
    const query = batch ? ((body.get('queries') as ValueMap[])[0] as ValueMap) : body;
    return ['query', 'facts', 'explain', 'predictions', 'relations'].every((key) =>
      sameAsReference(query.get(key) ?? null, theirs.get(key) ?? null),
    );
  }
  return (
    batch &&
    sameAsReference(body.get('projection') as Value, theirs.get('projection') ?? null) &&
    sameQueries(body.get('queries') as Value, theirs.get('queries') as Value)
  );
}

/** `certified open`: kind, decision, rejected facts. */
function reportText(answer: Answer | undefined): string {
  if (answer?.kind === 'verdict') {
    const report = reportFromResult(answer.data);
    return textOf(report.proofChecked ? 'certified' : 'uncertified', report);
  }
  return answer?.kind === 'denial' ? textOf('deny', reportFromDenial(answer.denial)) : 'floor';
}

function textOf(kind: string, report: AmberReport): string {
  const rejected = report.rejectedFacts.map((fact) => fact.field);
  return [kind, ...(report.decision === null ? [] : [String(report.decision)]), ...rejected].join(' ');
}

function sameReports(ours: string[], theirs: Value): boolean {
  if (!Array.isArray(theirs)) return false;
  // More than twelve come as runs of equal ones.
  if (theirs.every((run) => Array.isArray(run))) {
    const all = (theirs as [string, bigint][]).flatMap(([text, times]) =>
      Array.from({ length: Number(times) }, () => text),
    );
    return ours.join('\n') === all.join('\n');
  }
  const texts = theirs.map((report) => {
    if (!isMap(report)) return '-';
    const kind = String(report.get('kind'));
    if (kind.startsWith('floor')) return 'floor';
    const decision = report.get('decision') ?? null;
    const rejected = ((report.get('rejected') ?? []) as Value[]).map((fact) =>
      isMap(fact) ? fact.get('field') : fact,
    );
    return [kind, ...(decision === null ? [] : [String(decision)]), ...rejected].join(' ');
  });
  return ours.join('\n') === texts.join('\n');
}
