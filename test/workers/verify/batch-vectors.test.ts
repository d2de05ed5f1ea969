import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dumpJson, parseJson } from '../../../src/shared/json/json.ts';
import { isMap, sameValue, type Value, type ValueMap } from '../../../src/shared/json/value.ts';
import { resolveVerifier, type VerifierConfig } from '../../../src/shared/spec/verifier-config.ts';
import { cacheKey } from '../../../src/workers/verify/cache-key.ts';
import { type Answer, VerifierClient } from '../../../src/workers/verify/client.ts';
import { verifyCompletions } from '../../../src/workers/verify/verify.ts';
import type { Query } from '../../../src/workers/verify/wire-request.ts';
import { readVectors, type VectorCase } from '../../support/vector-file.ts';

/** Where we differ, or where there is nothing of ours to compare; each with its reason. */
const KNOWN = new Map([
  ['batch.duplicate-completions', 'equal queries are asked once, so they cannot get two answers'],
  ['batch.floor-below-clip', 'fewer answers than completions: the library then gives fewer rewards'],
  ['batch.meta-dict', 'metadata is one object an item here'],
  ['batch.meta-dict-two-keys', 'metadata is one object an item here'],
  ['batchpath.cache-duplicates', 'equal queries are sent once'],
  ['batchpath.cache-duplicates-across-chunks', 'equal queries are sent once'],
  ['batchpath.fallback-garbage', 'garbage is retried by other rules, and is no result'],
  ['batchpath.reward-short-results', 'a missing result is no result, never a shaped floor'],
  ['batchpath.reward-metadata-short', 'metadata is one object an item here'],
]);

function configOf(sections: Record<string, Value | undefined>, parser: Value = 'json_block'): VerifierConfig {
  const given = Object.entries(sections).filter((entry): entry is [string, Value] => entry[1] !== undefined);
  const domain = new Map<string, Value>([
    ['platform_id', 44n],
    ['parser', parser],
  ]);
  const root: ValueMap = new Map<string, Value>([['domain', domain], ...given]);
  const { config, problems } = resolveVerifier(root, null);
  expect(problems).toEqual([]);
  return config as VerifierConfig;
}

function sectionOf(given: Value | undefined, names: string[]): Value | undefined {
  return isMap(given) ? new Map([...given].filter(([name]) => names.includes(name))) : undefined;
}

test('the reward function of the library, over one answer a position', async () => {
  const differ: string[] = [];
  for (const one of readVectors('at-batch')) {
    if (!runs(one) || KNOWN.has(one.id)) continue;
    const shaper = one.in.get('shaper');
    const config = configOf({
      reward: isMap(shaper) ? sectionOf(shaper.get('args'), ['weights', 'clip']) : undefined,
      verifier: one.in.has('floor') ? new Map([['floor', one.in.get('floor') as Value]]) : undefined,
    });
    const prompts = one.in.get('prompts') as Value[];
    const completions = one.in.get('completions') as Value[];
    const metadata = (one.in.get('metadata') ?? completions.map(() => null)) as Value[];
    const count = Math.min(prompts.length, completions.length, metadata.length);
    const items = Array.from({ length: count }, (_, i) => ({
      prompt: prompts[i] as Value,
      completion: completions[i] as Value,
      metadata: metadata[i] as Value,
    }));
    const upstream = (one.in.get('upstream') ?? []) as ValueMap[];
    const results = await verifyCompletions(config, items, {
      // Each query's answer is the one at the position of its completion.
      ask: async (queries) =>
        queries.map((query) => {
          const at = completions.findIndex((text) => typeof text === 'string' && text.includes(dumpJson(query.facts)));
          const said = upstream[at] as ValueMap;
          if (said.get('from') === 'query_result') return { kind: 'verdict', data: said.get('result') as ValueMap };
          const error = said.get('error') as ValueMap | undefined;
          const message = (error?.get('message') ?? said.get('reason') ?? '') as string;
          return { kind: 'denial', denial: { message, rejectedFacts: error?.get('rejected_facts') ?? null } };
        }),
    });
    const rewards = results.map((result) => (result.status === 'completed' ? result.reward : null));
    const expected = (one.out.get('rewards') as Value[]).map(Number);
    if (JSON.stringify(rewards) !== JSON.stringify(expected)) differ.push(one.id);
  }
  expect(differ).toEqual([]);
});

// Not run: a shaper, parser or upstream that raises or answers out of step (there is no such hook), the shaper's
// options that no config names, and short metadata, which silently drops rewards there.
function runs(one: VectorCase): boolean {
  const shaper = one.in.get('shaper');
  const plain = !isMap(shaper) || shaper.get('kind') === 'default';
  const args = isMap(shaper) ? shaper.get('args') : null;
  const named = !isMap(args) || [...args.keys()].every((name) => name === 'weights' || name === 'clip');
  const odd = ['upstream_fixed', 'verify_raises', 'report_even_if_unparsed', 'parser', 'kwargs'];
  return plain && named && !odd.some((name) => one.in.has(name)) && !one.out.has('raises');
}

interface Scripted {
  path: string;
  body: ValueMap;
}

let server: http.Server;
let script: ValueMap[] = [];
let noBatch = false;
const requests: Scripted[] = [];

beforeAll(async () => {
  server = http.createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const path = (request.url ?? '').split('/').at(-1) as string;
    if (noBatch && path === 'query-batch') {
      response.writeHead(404).end();
      return;
    }
    const body = parseJson(Buffer.concat(chunks).toString()) as ValueMap;
    requests.push({ path, body });
    const { status, data } = answerTo(body, script.shift());
    response.writeHead(status).end(
      status === 200
        ? dumpJson(
            new Map<string, Value>([
              ['ok', true],
              ['data', data],
            ]),
          )
        : '',
    );
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
});
afterAll(() => {
  server.close();
});

const CERTIFIED = new Map<string, Value>([
  ['decision', 'open'],
  ['proof_checked', true],
]);

function answerTo(body: ValueMap, outcome: ValueMap | undefined): { status: number; data: Value } {
  if (outcome?.get('do') === 'results')
    return { status: 200, data: new Map([['results', outcome.get('results') as Value]]) };
  if (outcome?.get('do') === 'ok') return { status: 200, data: outcome.get('result') ?? CERTIFIED };
  if (outcome?.get('do') !== 'echo') return { status: 503, data: null };
  const results = (body.get('queries') as ValueMap[]).map((query, i) => {
    const number = (query.get('facts') as ValueMap).get('n') ?? BigInt(i);
    const data = new Map<string, Value>([
      ['decision', `d${number}`],
      ['proof_checked', true],
    ]);
    return new Map<string, Value>([
      ['index', BigInt(i)],
      ['status', 'ok'],
      ['data', data],
    ]);
  });
  return { status: 200, data: new Map([['results', results]]) };
}

/** The queries of a `batch` or `call` op, null where the completion did not parse. */
function itemsOf(op: ValueMap): (Query | null)[] {
  const query = (facts: Value): Query => ({
    query: 'Open the sluice?',
    facts: facts as ValueMap,
    relations: null,
    predictions: null,
  });
  const count = op.get('numbered');
  const gaps = (op.get('null_at') ?? []) as bigint[];
  if (typeof count === 'bigint')
    return Array.from({ length: Number(count) }, (_, i) =>
      gaps.includes(BigInt(i)) ? null : query(new Map([['n', BigInt(i)]])),
    );
  return (op.get('items') as Value[]).map((item) => {
    if (typeof item === 'string') return query(new Map([['item', item]]));
    if (!isMap(item)) return null;
    const { relations, predictions } = { relations: item.get('relations'), predictions: item.get('predictions') };
    return {
      query: (item.get('query') ?? 'Open the sluice?') as string,
      facts: (item.get('facts') ?? new Map()) as ValueMap,
      relations: (relations ?? null) as ValueMap | null,
      predictions: (predictions ?? null) as ValueMap | null,
    };
  });
}

function sameRequest(ours: Scripted, theirs: ValueMap): boolean {
  if (theirs.get('call') === 'query')
    return ['query', 'facts', 'explain', 'predictions'].every((key) =>
      sameValue(ours.body.get(key) ?? null, theirs.get(key) ?? null),
    );
  const queries = ours.body.get('queries') as Value[];
  const expected = theirs.get('queries') as Value;
  if (!sameValue(ours.body.get('projection') as Value, theirs.get('projection') ?? null)) return false;
  if (isMap(expected))
    return createHash('sha256').update(dumpJson(queries)).digest('hex') === expected.get('json_sha256');
  return dumpJson(queries) === dumpJson(expected);
}

// Where nothing fails and no query is asked twice at once, the wire sees what it sees of the library: meanings and
// retries follow the design instead (wire.test.ts, client.test.ts).
test('chunks, payloads, order, keys and rewards on the batch path', async () => {
  const differ: string[] = [];
  let compared = 0;
  for (const one of readVectors('at-batchpath')) {
    const given = one.in.get('config') as ValueMap;
    const ops = one.in.get('script') as ValueMap[];
    const upstream = ops.flatMap((op) => (op.get('upstream') ?? []) as ValueMap[]);
    const healthy = upstream.every(
      (outcome) =>
        !JSON.stringify(dumpJson(outcome)).match(/transient|sdk-error|"do\\": \\"value|\\"status\\": \\"error/),
    );
    const odd = ['use_projection', 'client_raises', 'shaper', 'max_concurrency'].some((name) => given.has(name));
    if (KNOWN.has(one.id) || !healthy || odd || one.out.has('raises') || ops.some((op) => op.get('op') === 'call'))
      continue;
    if (!['chunking', 'sent', 'cache', 'reward', 'fallback'].includes(one.kind)) continue;
    noBatch = given.get('query_batch') === false;
    const config = configOf(
      { verifier: given.has('floor') ? new Map([['floor', given.get('floor') as Value]]) : undefined },
      given.get('parser') ?? 'json_block',
    );
    config.cache = given.get('cache') !== false;
    const port = (server.address() as AddressInfo).port;
    const client = new VerifierClient({
      baseUrl: `http://127.0.0.1:${port}`,
      platformId: 44n,
      apiKey: 'at_x',
      concurrency: 1,
      tries: 1,
    });
    const cache = new Map<string, Answer>();
    let same = true;
    for (const [i, op] of ops.entries()) {
      const log = (one.out.get('log') as ValueMap[])[i] as ValueMap;
      requests.length = 0;
      script = [...((op.get('upstream') ?? []) as ValueMap[])];
      if (op.get('op') === 'reward') {
        const completions = op.get('completions') as Value[];
        const metadata = op.get('metadata') as Value[] | undefined;
        const items = completions.map((completion, n) => ({
          prompt: 'p',
          completion,
          metadata: metadata?.[n] ?? null,
        }));
        const results = await verifyCompletions(config, items, { ask: (queries) => client.ask(queries), cache });
        const rewards = results.map((result) => (result.status === 'completed' ? result.reward : null));
        same &&= JSON.stringify(rewards) === JSON.stringify((log.get('rewards') as Value[]).map(Number));
      } else if (op.get('op') === 'batch') {
        const items = itemsOf(op);
        const keys = items.map((item) => (item ? cacheKey(44n, item) : null));
        const known = log.get('keys');
        if (Array.isArray(known)) same &&= JSON.stringify(keys) === JSON.stringify(known);
        const missing = items.filter(
          (item, n): item is Query => item !== null && !(config.cache && cache.has(keys[n] as string)),
        );
        const distinct = [...new Map(missing.map((query) => [cacheKey(44n, query), query])).values()];
        for (const [n, answer] of (await client.ask(distinct)).entries())
          if (answer.kind === 'verdict') cache.set(cacheKey(44n, distinct[n] as Query), answer);
      }
      const theirs = (log.get('requests') ?? []) as ValueMap[];
      same &&=
        requests.length === theirs.length && requests.every((ours, n) => sameRequest(ours, theirs[n] as ValueMap));
    }
    client.close();
    compared++;
    if (!same) differ.push(one.id);
  }
  expect({ differ, compared }).toEqual({ differ: [], compared: 26 });
});
