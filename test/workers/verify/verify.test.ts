import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../../src/shared/json/json.ts';
import type { Value, ValueMap } from '../../../src/shared/json/value.ts';
import { resolveVerifier, type VerifierConfig } from '../../../src/shared/spec/verifier-config.ts';
import type { Answer } from '../../../src/workers/verify/client.ts';
import { type VerifyItem, verifyCompletions } from '../../../src/workers/verify/verify.ts';
import type { Query } from '../../../src/workers/verify/wire-request.ts';
import { TIMED } from '../../support/timed.ts';

function configOf(more = ''): VerifierConfig {
  const { config } = resolveVerifier(parseJson(`{"domain": {"platform_id": 4${more}}}`) as ValueMap, null);
  return config as VerifierConfig;
}
const config = configOf();
const data = parseJson(
  '{"proof_checked": true, "decision": "permit", "explanation": {"symbolic_trace": {"rules": [{"rule_name": "R", "fired": true}]}}}',
) as ValueMap;
const verdict: Answer = { kind: 'verdict', data };

function block(answer: string, facts: string): string {
  return `<decision>{"classification": "${answer}", "facts": ${facts}}</decision>`;
}
function item(completion: Value, gold: string | null = null): VerifyItem {
  return { prompt: 'p', completion, metadata: gold === null ? null : new Map([['gold', gold]]) };
}

function asker(answer: (query: Query) => Answer = () => verdict) {
  const asked: Query[] = [];
  const ask = async (queries: readonly Query[]): Promise<Answer[]> => {
    asked.push(...queries);
    return queries.map(answer);
  };
  return { asked, ask };
}

describe('what a completion earns', () => {
  test('certified and right is the top, certified and wrong is below, unreadable is the floor', async () => {
    const results = await verifyCompletions(
      config,
      [
        item(block('permit', '{"a": 1}'), 'permit'),
        item(block('deny', '{"a": 1}'), 'permit'),
        item('I would say permit'),
      ],
      asker(),
    );
    expect(results.map((one) => one.status === 'completed' && one.reward)).toEqual([
      1.9000000000000001, 0.8999999999999999, -1,
    ]);
  });

  test('a refusal is shaped with its rejected facts', async () => {
    const denial: Answer = { kind: 'denial', denial: { message: 'refused', rejectedFacts: ['a'] } };
    const [result] = await verifyCompletions(
      config,
      [item(block('permit', '{"a": 1}'), 'permit')],
      asker(() => denial),
    );
    expect(result).toMatchObject({
      status: 'completed',
      components: { certified: 0, rejected_penalty: 1 },
      report: { error: 'refused' },
    });
  });

  test.each([
    ['a number', 5n],
    ['null', null],
    ['an object', new Map([['content', 'x']])],
    ['deep JSON', `<decision>{"facts": {"n": ${'['.repeat(100_000)}`],
    ['deep JSON that closes', block('x', `{"n": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`)],
    ['NaN as a fact', block('x', '{"n": NaN}')],
    ['an infinity as a fact', block('x', '{"n": [1e999]}')],
    ['a million openings', '<decision>'.repeat(100_000)],
  ] as [string, Value][])('%s earns the floor and asks nobody', async (_, completion) => {
    const { ask, asked } = asker();
    const [result] = await verifyCompletions(config, [item(completion)], { ask });
    expect(result).toMatchObject({ status: 'completed', reward: -1, report: null });
    expect(asked).toEqual([]);
  });

  test('a template that trips over a completion earns the floor', async () => {
    const odd = configOf(', "query_template": "{facts[n]:>5}"');
    const [fine, trips] = await verifyCompletions(
      odd,
      [item(block('x', '{"n": 1}')), item(block('x', '{"n": {}}'))],
      asker(),
    );
    expect([fine?.status === 'completed' && fine.parsed?.query, trips?.status === 'completed' && trips.reward]).toEqual(
      ['    1', -1],
    );
  });

  test('a pattern that runs away on a completion is cut short', async () => {
    const regex = configOf(', "parser": "regex_block", "parser_args": {"fact_pattern": "(?m)^((?:a+)+) (b)$"}');
    const [away, fine] = await verifyCompletions(regex, [item('a'.repeat(50)), item('aaa b')], asker());
    expect(away).toMatchObject({ reward: -1, floored: "the parser's pattern runs away on the completion" });
    expect(fine).toMatchObject({ floored: null, parsed: { facts: new Map([['aaa', 'b']]) } });
  });

  test('expectations of the wrong shape earn the floor, and say so', async () => {
    const [result] = await verifyCompletions(
      config,
      [{ prompt: 'p', completion: block('x', '{}'), metadata: new Map([['criteria_gold', ['R']]]) }],
      asker(() => ({
        kind: 'verdict',
        data: parseJson(
          '{"proof_checked": true, "explanation": {"symbolic_trace": {"rules": [{"rule_name": "R", "fired": true, "required": true}]}}}',
        ) as ValueMap,
      })),
    );
    expect(result).toMatchObject({ status: 'completed', reward: -1, floored: 'the reward is not a finite number' });
  });

  test('messages are read like their text', async () => {
    const messages = [
      new Map([
        ['role', 'assistant'],
        ['content', block('permit', '{"a": 1}')],
      ]),
    ];
    const results = await verifyCompletions(config, [item(messages), item(block('permit', '{"a": 1}'))], asker());
    expect(results[0]).toMatchObject({ status: 'completed', cached: false });
    expect(results[1]).toMatchObject({ status: 'completed', cached: true });
  });
});

describe('what the verifier does wrong', () => {
  test.each([
    [{ kind: 'unavailable', detail: 'gone' }, 'verifier_unavailable'],
    [{ kind: 'misconfigured', detail: 'wrong key' }, 'misconfigured'],
  ] as [Answer, string][])('%j is no result and never a reward', async (answer, cause) => {
    const cache = new Map<string, Answer>();
    const [result] = await verifyCompletions(config, [item(block('permit', '{}'), 'permit')], {
      ...asker(() => answer),
      cache,
    });
    expect(result).toEqual({ status: 'no_result', cause, detail: 'detail' in answer && answer.detail });
    expect(cache.size).toBe(0);
  });

  test('what may not be asked any more has no result', async () => {
    const items = [
      item(block('permit', '{"a": 1}')),
      item(block('permit', '{"a": 2}')),
      item(block('permit', '{"a": 1}')),
    ];
    const results = await verifyCompletions(config, items, { ...asker(), budget: () => 1 });
    expect(results.map((one) => (one.status === 'no_result' ? one.cause : one.status))).toEqual([
      'completed',
      'budget',
      'completed',
    ]);
  });
});

describe('asking as little as possible', () => {
  test('equal queries are asked once; an answer that is kept is not asked for again', async () => {
    const { ask, asked } = asker();
    const cache = new Map<string, Answer>();
    const four = new Array(4).fill(item(block('permit', '{"a": 1}')));
    await verifyCompletions(config, four, { ask, cache });
    const again = await verifyCompletions(config, four, { ask, cache });
    expect(asked).toHaveLength(1);
    expect(again.every((one) => one.status === 'completed' && one.cached)).toBe(true);
  });

  test('with the cache off a later call asks again', async () => {
    const { ask, asked } = asker();
    const off = { ...config, cache: false };
    for (let i = 0; i < 2; i++) await verifyCompletions(off, [item(block('permit', '{}'))], { ask, cache: new Map() });
    expect(asked).toHaveLength(2);
  });
});

describe('what the event loop notices of hostile completions', () => {
  const regex = (args: string) => configOf(`, "parser": "regex_block"${args}`);
  const runaway = regex(', "parser_args": {"fact_pattern": "(?m)^((?:a+)+) (b)$"}');
  const large = (bytes: number) => block('x', `{"a": 1${', "k": 1'.repeat(bytes / 8)}}`);
  const blank = `fact a: 1\n${'\n'.repeat(60_000)}q`;

  test.each([
    ['blank lines for the usual patterns', regex(''), new Array(256).fill(blank), null],
    [
      'a pattern that runs away',
      runaway,
      new Array(20).fill('a'.repeat(50)),
      "the parser's pattern runs away on the completion",
    ],
    ['blocks of 5 MB', config, new Array(6).fill(large(5_000_000)), 'the decision block is above 1 MB'],
    ['spaces of 5 MB', config, new Array(6).fill(' '.repeat(5_000_000) + block('x', '{}')), null],
  ] as [string, VerifierConfig, string[], string | null][])(
    '%s: timers keep going',
    TIMED,
    async (_, of, texts, floored) => {
      let lag = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        lag = Math.max(lag, performance.now() - last - 50);
        last = performance.now();
      }, 50);
      const results = await verifyCompletions(
        of,
        texts.map((text) => item(text)),
        asker(),
      );
      await sleep(60);
      clearInterval(timer);
      // What this guards against stood for tens of seconds; a busy machine stands for a few.
      expect(lag).toBeLessThan(10_000);
      expect(new Set(results.map((one) => one.status === 'completed' && one.floored))).toEqual(new Set([floored]));
    },
  );

  test('a block just below 1 MB is read', async () => {
    const text = `<decision>{"facts": {"a": "${'x'.repeat(1024 * 1024 - 20)}"}}</decision>`;
    const results = await verifyCompletions(config, [item(text), item(text.replace('xx', 'xé'))], asker());
    expect(results.map((one) => one.status === 'completed' && one.floored)).toEqual([
      null,
      'the decision block is above 1 MB',
    ]);
  });
});
