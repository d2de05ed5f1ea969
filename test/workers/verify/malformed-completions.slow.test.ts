// 100,000 malformed completions: each is parsed, asked for where it can be, and earns a finite reward; none throws, and
// what is asked is sound JSON. FARM_COMPLETIONS=from-to tries other numbers.

import { expect, test } from 'vitest';
import { toValue } from '../../../src/shared/json/json.ts';
import type { Value } from '../../../src/shared/json/value.ts';
import { resolveVerifier, type VerifierConfig } from '../../../src/shared/spec/verifier-config.ts';
import type { Answer } from '../../../src/workers/verify/client.ts';
import { type VerifyItem, verifyCompletions } from '../../../src/workers/verify/verify.ts';
import { bodyText, type Query, singleBody } from '../../../src/workers/verify/wire-request.ts';
import { Seeded } from '../../support/seeded.ts';
import { permitted } from '../../support/stub-platform.ts';

const [FROM, TO] = (process.env.FARM_COMPLETIONS ?? '0-100000').split('-').map(Number) as [number, number];
const SLICE = 500;
const FLOOR = -1;

const CONFIGS: VerifierConfig[] = [
  { parser: 'json_block', query_template: 'Classify: {facts}' },
  { parser: 'json_block', query_template: '{prompt} {answer} {facts[age]:>5} {facts}' },
  { parser: 'regex_block' },
  { parser: 'regex_block', parser_args: { fact_pattern: '(?m)^(\\w+)=(.*)$' } },
].map(
  (more) => resolveVerifier(toValue({ domain: { platform_id: 1, ...more } }) as never, null).config as VerifierConfig,
);

const NUMBERS = [
  'NaN',
  'Infinity',
  '-Infinity',
  '1e999',
  '-0',
  '1e-400',
  '9'.repeat(400),
  '9'.repeat(5_000),
  '0x1',
  '01',
  '1_0',
  '٣',
  '1e',
  '.5',
  '5.',
];
const TEXTS = [
  '\u0000',
  '\ud800',
  '\udfff\ud800',
  '\u2028',
  '\ufeff',
  'a'.repeat(3_000),
  '{',
  '{0}',
  '{a.__class__}',
  '{facts!r:9999999}',
  '%s',
  '</decision>',
  '<decision>',
  '\\',
  '"',
  '\u202e',
  '🏳️‍🌈',
  '𝟙',
  'ſ',
  'İ',
];
const KEYS = [
  'age',
  '',
  'facts',
  '__proto__',
  'constructor',
  'toString',
  'age.b',
  '0',
  '\u0000',
  'ａｇｅ',
  'classification',
];

function oddValue(random: Seeded, depth: number): string {
  if (random.chance(2))
    return random.pick(['1', '30', '"x"', '2.50', '1e-05', 'true', '[1]', '{"a": 1}', '1180591620717411303424']);
  if (depth === 0) return random.pick(NUMBERS);
  return random.pick<() => string>([
    () => random.pick(NUMBERS),
    () => random.pick(['null', 'true', 'false', 'True', 'None', 'undefined', '""', "'x'", '[]', '{}', '']),
    () => JSON.stringify(random.pick(TEXTS)),
    () => `"${random.pick(TEXTS)}"`,
    () => `[${oddValue(random, depth - 1)},${oddValue(random, depth - 1)}${random.pick(['', ',', ' '])}]`,
    () =>
      `{${JSON.stringify(random.pick(KEYS))}:${oddValue(random, depth - 1)},${JSON.stringify(random.pick(KEYS))}:${oddValue(random, depth - 1)}}`,
    () => random.pick(['[', '{"a":']).repeat(random.pick([3, 200, 899, 901, 2_000])),
    () => `${'['.repeat(random.pick([50, 880, 1_200]))}1${']'.repeat(random.pick([50, 880, 1_200]))}`,
    () => String(random.next()),
  ])();
}

function factsOr(random: Seeded, key: string): string {
  const facts = key === 'facts' && !random.chance(3);
  return facts
    ? `{"age": ${oddValue(random, 2)}, ${JSON.stringify(random.pick(KEYS))}: ${oddValue(random, 1)}}`
    : oddValue(random, 2);
}

function blockOf(random: Seeded): string {
  const names = ['classification', 'facts', ...[random.pick(KEYS), 'relations', 'facts'].slice(random.below(4))];
  const members = names.map((key) => `${random.chance(20) ? "'" : '"'}${key}":${factsOr(random, key)}`);
  return `{${members.join(random.chance(30) ? ';' : ',')}}`;
}

const usual = (text: string): string[] => new Array(8).fill(text);

function textOf(random: Seeded): string {
  const open = random.pick([
    '<decision>',
    '<decision>',
    '<DECISION >',
    '<decision',
    '```json\n',
    '',
    '<decision><decision>',
  ]);
  const close = random.pick([...usual('</decision>'), '</ decision>', '', '```', '</decision></decision>']);
  const lines = (): string =>
    Array.from(
      { length: random.below(6) },
      () =>
        `${random.pick(['fact ', 'fact ', 'FACT', 'answer: ', 'ſact ', 'age='])}${random.pick([...KEYS, ...TEXTS])}: ${oddValue(random, 1)}`,
    ).join(random.pick(['\n', '\r', '\u2028', '\n\n']));
  const text = random.pick<() => string>([
    () => `${random.pick(TEXTS)}${open}${blockOf(random)}${close}`,
    () => `${open}${blockOf(random)}${close}${open}${blockOf(random)}${close}`,
    () => lines(),
    () => `${lines()}${open}${blockOf(random)}${close}`,
    () => `<decision>{"classification":"permit","facts":{"age":${oddValue(random, 2)}}}</decision>`,
    () => random.bytes(random.below(300)).toString(random.pick(['latin1', 'utf8', 'utf16le'])),
  ])();
  return random.chance(5) ? text.slice(0, random.below(text.length + 1)) : text;
}

function completionOf(random: Seeded): Value {
  if (!random.chance(8)) return textOf(random);
  const message = (): Value =>
    new Map<string, Value>([
      [random.pick(['content', 'content', 'text']), random.pick<Value>([textOf(random), null, 7n, 1.5, [], new Map()])],
    ]);
  return random.pick<Value>([
    null,
    true,
    7n,
    Number.NaN,
    [],
    new Map(),
    [message()],
    [message(), message()],
    [[message()]],
    ['x', message()],
    new Map([['content', textOf(random)]]),
  ]);
}

function itemOf(number: number): VerifyItem {
  const random = new Seeded(number);
  const prompt = random.pick<Value>([
    'p',
    '',
    null,
    7n,
    '\ud800',
    [],
    [new Map<string, Value>([['content', 'x']])],
    '{',
    '</s>',
  ]);
  const gold = random.pick<Value>(['permit', null, 1n, 1.5, [], new Map(), true, Number.NaN]);
  const criteria = random.pick<Value>([null, new Map([['age', 1n]]), [], 'x', new Map<string, Value>([['age', null]])]);
  const metadata = random.pick<Value>([
    null,
    new Map([
      ['gold', gold],
      ['criteria_gold', criteria],
    ]),
    [],
    'x',
  ]);
  return { prompt, completion: completionOf(random), metadata };
}

const verdict: Answer = { kind: 'verdict', data: toValue(permitted('q')) as never };
let asked = 0;

/** What reaches the wire is JSON for the strictest of readers. */
function sound(query: Query): Answer {
  JSON.parse(bodyText(singleBody(query, false)));
  asked++;
  return verdict;
}

test('100,000 malformed completions earn a finite reward each, by every parser', {
  timeout: 120_000 + (TO - FROM) * 5,
}, async () => {
  const wrong: string[] = [];
  let floored = 0;
  let heap = 0;
  const keys = new Set<string>();
  for (let start = FROM; start < TO; start += SLICE) {
    const items = Array.from({ length: Math.min(SLICE, TO - start) }, (_, i) => itemOf(start + i));
    const config = CONFIGS[(start / SLICE) % CONFIGS.length] as VerifierConfig;
    const results = await verifyCompletions(config, items, { ask: async (queries) => queries.map(sound) });
    for (const [i, one] of results.entries()) {
      if (one.status !== 'completed') wrong.push(`${start + i}: ${one.cause}`);
      else if (!Number.isFinite(one.reward)) wrong.push(`${start + i}: ${one.reward}`);
      else if (one.floored !== null) {
        floored++;
        if (one.reward !== FLOOR) wrong.push(`${start + i}: floored with ${one.reward}`);
      } else if (one.cacheKey === null || one.parsed === null || one.report === null)
        wrong.push(`${start + i}: a reward without a report`);
      else keys.add(one.cacheKey);
    }
    if (start === FROM + Math.floor((TO - FROM) / 4 / SLICE) * SLICE) heap = process.memoryUsage().heapUsed;
  }
  expect(wrong.slice(0, 20)).toEqual([]);
  // Both happen, or this tries nothing.
  expect(asked).toBeGreaterThan((TO - FROM) / 20);
  expect(keys.size).toBeGreaterThan((TO - FROM) / 50);
  expect(floored).toBeGreaterThan((TO - FROM) / 20);
  expect((process.memoryUsage().heapUsed - heap) / 1024 / 1024).toBeLessThan(300);
});
