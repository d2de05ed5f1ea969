// Malformed answers of a platform, one for each number, and what the table says each means.

import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type Expected, http, say, wireOf, withMember } from './malformed-wire.ts';
import { Seeded } from './seeded.ts';
import { permitted } from './stub-platform.ts';

export interface MalformedCase {
  number: number;
  kind: string;
  /** Over the single path: the batch path is told to be missing. */
  single: boolean;
  /** For each query. */
  expected: Expected[];
  /** What the socket says to a call with these of its queries. */
  play(socket: Socket, items: readonly number[]): void;
}

type Reply = { status?: number; headers?: string[]; body: Buffer | string; expected: Expected };

const uncertified = { ...permitted('q'), proof_checked: false, decision: null };
const right = (): object => permitted('q');
const refusal = { code: 'service_unavailable', message: 'not certified', rejected_facts: [{ field: 'age' }] };
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
/** Members of an answer that are no finite number, or no number at all. */
const NOT_FINITE = ['NaN', 'Infinity', '-Infinity', '1e999', '-1e999'];
const NO_JSON = [
  '01',
  '+1',
  '.5',
  '0x10',
  "'x'",
  'undefined',
  'True',
  'None',
  '"\u0001"',
  '"\\x"',
  '"\\u12"',
  '1 2',
  '[1,]',
  '{1:2}',
];
const HARMLESS = [
  '1e308',
  '123456789012345678901234567890',
  '-0.0',
  '1e-400',
  '"\\ud800"',
  '{"a":{"b":[]}}',
  deep(300),
];

/** A sound answer to the whole call with one thing wrong. */
function bodyOf(random: Seeded, sound: string): Reply {
  const none = (body: Buffer | string): Reply => ({ body, expected: 'none' });
  const same = (body: Buffer | string): Reply => ({ body, expected: 'right' });
  const at = sound.indexOf('"data":{') + '"data":{'.length;
  const inData = (member: string): string => `${sound.slice(0, at)}${member},${sound.slice(at)}`;
  return random.pick<() => Reply>([
    () => none(sound.slice(0, random.below(sound.length))),
    () => none(`${sound}${random.pick(['}', 'x', ',', '{}', '\u0000'])}`),
    () => none(random.bytes(1 + random.below(2_000))),
    () => none(random.pick(['', ' ', 'null', 'true', '0', '[]', '{}', '"ok"', '[1]', 'NaN', '<html>no</html>', 'OK'])),
    () => none(inData(`"x":${random.pick(NOT_FINITE)}`)),
    () => none(inData(`"x":${random.pick(NO_JSON)}`)),
    () => same(inData(`"x":${random.pick(HARMLESS)}`)),
    () => none(inData(`"x":${deep(1_100 + random.below(200_000))}`)),
    () => none(inData(`"x":${'9'.repeat(5_000)}`)),
    () => none(deep(random.below(300_000))),
    () => none(sound.replace('"ok":true', `"ok":${random.pick(['1', '"true"', 'null', 'false', '[true]', '{}'])}`)),
    () => none(sound.replace('"ok":true', `"ok":true,"error":${random.pick(['{}', '"x"', '1', '{"code":"x"}'])}`)),
    () => none(sound.replace('"ok":true', '"ok":true,"ok":false')),
    () => same(sound.replace('"ok":true', '"ok":false,"ok":true')),
    () => none(`${sound.slice(0, -1)},"data":${random.pick(['null', '[]', '1', '"x"', '{}'])}}`),
    () =>
      none(sound.replace(/"platform_id":1/g, `"platform_id":${random.pick(['2', '"11"', '[1]', '{"a":1}', '1.5'])}`)),
    () => same(` \n\t${sound}\r\n `),
    () => none(Buffer.from(sound, 'utf16le')),
    () => none(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(sound, 'utf16le')])),
    () => none(Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(sound, 'utf16le').swap16()])),
    () => none(Buffer.from(inData('"name":"caf\u00e9"'), 'latin1')),
    () => none(Buffer.from(inData('"name":"\u00c0\u00af\u00ed\u00a0\u0080"'), 'latin1')),
    () => none(gzipSync(sound)),
    () => none(withMember(sound, '"ok"').replace('{"ok",', '{"ok":,')),
    () => ({ headers: ['content-encoding: gzip'], ...none(random.bytes(200)) }),
    () => ({ headers: ['content-encoding: gzip'], ...none(gzipSync(sound).subarray(0, 40)) }),
    () => ({ headers: ['content-type: text/html; charset=utf-7'], ...same(sound) }),
  ])();
}

const STATUS_NONE = [
  202, 204, 300, 301, 302, 303, 304, 307, 308, 400, 405, 406, 408, 409, 410, 413, 415, 418, 422, 429, 431, 451, 499,
  500, 501, 502, 503, 504, 505, 507, 511, 520, 529, 599, 600, 799, 999,
];

/** Another status than 200, without an envelope that can be read. */
function statusOf(random: Seeded, sound: string): Reply {
  const junk = random.pick([
    '',
    '<html><body>bad gateway</body></html>',
    '{',
    'null',
    '[]',
    '{"ok":false}',
    '{"ok":false,"error":"x"}',
    '{"error":{"code":"service_unavailable"}}',
    '{"ok":false,"error":["service_unavailable"]}',
  ]);
  const headers = random.pick([
    [],
    ['location: /elsewhere'],
    ['location: http://127.0.0.1:1/'],
    ['retry-after: -5'],
    ['retry-after: soon'],
    ['retry-after: 1e9'],
    ['retry-after: 99999999999999999999'],
    ['www-authenticate: Basic'],
  ]);
  return random.pick<() => Reply>([
    () => ({ status: random.pick(STATUS_NONE), headers, body: junk, expected: 'none' }),
    () => ({ status: random.pick(STATUS_NONE.filter((one) => one >= 300)), headers, body: sound, expected: 'none' }),
    () => ({ status: random.pick([401, 402, 403]), headers, body: random.pick([junk, sound]), expected: 'refused' }),
    () => ({
      status: 404,
      headers,
      body: random.pick([junk, '{"ok":false,"error":{"code":"not_found","message":"no such platform"}}']),
      expected: 'refused',
    }),
  ])();
}

/** The error envelope with something odd about it. */
function envelopeOf(random: Seeded): Reply {
  const wrap = (error: unknown, more: object = {}): string => JSON.stringify({ ok: false, error, ...more });
  const odd: unknown = random.pick([null, 1, true, [], {}, 'x', [null], [1, 'x'], { a: 1 }, 'y'.repeat(5_000)]);
  const reply = (status: number, body: string, expected: Expected): Reply => ({ status, body, expected });
  const request = random.pick([400, 422]);
  return random.pick<() => Reply>([
    () => reply(503, wrap(refusal), 'denial'),
    () =>
      reply(
        random.pick([500, 503, 507]),
        wrap({ ...refusal, message: odd, details: odd, stalled_stage: odd }),
        'denial',
      ),
    () =>
      reply(
        500,
        wrap({ code: odd, message: odd, missing_atoms: ['a'] }, { rejected_facts: [{ field: 'age' }] }),
        'denial',
      ),
    () => reply(request, wrap({ code: 'validation_error', details: [{ field: 'age' }, odd] }), 'denial'),
    () => reply(request, wrap({ code: 'validation_error', details: [{ field: 'top_k' }] }), 'none'),
    () => reply(random.pick([502, 504]), wrap(refusal), 'none'),
    () => reply(random.pick([500, 501, 503, 505]), wrap({ code: odd, message: odd, details: odd }), 'none'),
    () => reply(random.pick([405, 406, 410, 415, 451]), wrap({ code: odd, message: odd }), 'none'),
    () => reply(random.pick([408, 409]), wrap(refusal), 'none'),
    () => reply(429, wrap(random.pick<unknown>([odd, refusal])), 'none'),
    () => reply(random.pick([401, 402, 403]), wrap(random.pick<unknown>([odd, refusal])), 'refused'),
    () => reply(503, wrap(refusal).slice(0, -1 - random.below(40)), 'none'),
    () => reply(503, wrap(refusal).replace('"age"', random.pick(NOT_FINITE)), 'denial'),
    () => reply(200, wrap(refusal), 'none'),
  ])();
}

/** One item of a batch (or the data of a single answer), and what it means. */
function dataOf(random: Seeded): { data: unknown; expected: Expected } {
  const whole = permitted('q');
  const odd: unknown = random.pick([0, 1, 'true', 'x', [], {}, [true], { permit: true }, 1e300, '\u0000', '\ud800']);
  return random.pick<() => { data: unknown; expected: Expected }>([
    () => ({ data: { ...whole, proof_checked: odd }, expected: 'none' }),
    () => ({ data: { ...whole, explanation: random.pick<unknown>([1, 'x', [], true]) }, expected: 'none' }),
    () => ({ data: { ...whole, decision: odd, answer: odd }, expected: 'any' }),
    () => ({ data: { ...whole, proof_summary: odd }, expected: 'any' }),
    () => ({
      data: {
        ...whole,
        explanation: {
          schema_version: odd,
          confidence: odd,
          symbolic_trace: odd,
          certified_fact_summary: odd,
          rejected_facts: odd,
        },
      },
      expected: 'any',
    }),
    () => ({ data: { platform_id: 1, query: 'q' }, expected: 'none' }),
    () => ({ data: random.pick([null, 1, 'x', [], [whole], true]), expected: 'none' }),
    () => ({ data: { ...whole, status: 'unavailable', proof_checked: null }, expected: 'none' }),
    () => ({ data: { ...whole, platform_id: random.pick<unknown>([2, '2', [1], 0]) }, expected: 'none' }),
    () => ({ data: uncertified, expected: 'uncertified' }),
    () => ({ data: whole, expected: 'right' }),
  ])();
}

interface Item {
  text: (index: number) => string[];
  expected: Expected;
}

function itemOf(random: Seeded): Item {
  const ok = JSON.stringify({ status: 'ok', data: right() });
  const put = (index: string, rest = ok): string => withMember(rest, `"index":${index}`);
  const of = (expected: Expected, text: Item['text']): Item => ({ expected, text });
  const error = (error: unknown, expected: Expected): Item =>
    of(expected, (i) => [put(String(i), JSON.stringify({ status: 'error', error }))]);
  const made = dataOf(random);
  return random.pick<() => Item>([
    () => of('right', (i) => [put(String(i))]),
    () => of(made.expected, (i) => [put(String(i), JSON.stringify({ status: 'ok', data: made.data }))]),
    () => of('none', () => []),
    () => of('none', () => [ok]),
    () => of('none', (i) => [put(String(i)), put(String(i))]),
    () =>
      of('none', (i) => [
        put(random.pick([`${i}.0`, `"${i}"`, 'null', 'true', '-1', '[0]', '1e0', String(2n ** 70n)])),
      ]),
    () => of('none', (i) => [`{"index":${i},"index":99,${ok.slice(1)}`]),
    () => of('right', (i) => [`{"index":99,"index":${i},${ok.slice(1)}`]),
    () => of('right', (i) => [put(String(i)), put('99'), put('-1'), random.pick(['1', 'null', '[]', '"x"', '{}'])]),
    () =>
      of('none', (i) => [put(String(i), ok.replace('"ok"', random.pick(['true', '"OK"', 'null', '1', '"error"'])))]),
    () => of('none', (i) => [put(String(i), JSON.stringify({ status: 'ok', data: right(), error: { code: 'x' } }))]),
    () => error(refusal, 'denial'),
    () => error({ code: 'validation_error', details: [{ field: 'age' }] }, 'denial'),
    () => error({ code: 'certification_failed', message: 7 }, 'plain denial'),
    () =>
      error(
        random.pick<unknown>([null, 'x', 1, [], {}, { code: 7 }, { code: 'what' }, { code: ['service_unavailable'] }]),
        'none',
      ),
    () => error({ code: 'internal_error', status_code: random.pick<unknown>([500, 502, '503', 1e300, null]) }, 'none'),
    () => error({ code: random.pick(['rate_limit_exceeded', 'too_many_requests']) }, 'none'),
    () => error({ code: random.pick(['unauthorized', 'forbidden', 'capability_disabled', 'not_found']) }, 'refused'),
    () => error({ ...refusal, status_code: random.pick([401, 403]) }, 'refused'),
    () => error({ ...refusal, status_code: random.pick([429, 504, 408]) }, 'none'),
  ])();
}

const soundSingle = JSON.stringify({ ok: true, data: right() });
function soundBatch(count: number): string {
  const results = Array.from({ length: count }, (_, index) => ({ index, status: 'ok', data: right() }));
  return JSON.stringify({ ok: true, data: { platform_id: 1, results } });
}

export function malformedCase(number: number): MalformedCase {
  const random = new Seeded(number);
  const single = random.chance(3);
  const count = single ? 1 : 1 + random.below(4);
  const whole = (kind: string, reply: Reply): MalformedCase => ({
    ...{ number, kind, single, expected: new Array<Expected>(count).fill(reply.expected) },
    play: (socket) => say(socket, http(reply.status ?? 200, reply.body, reply.headers)),
  });
  switch (random.below(5)) {
    case 0:
      return bodyCase(number, single, count, random);
    case 1:
      return whole('status', statusOf(random, single ? soundSingle : soundBatch(count)));
    case 2:
      return whole('envelope', envelopeOf(random));
    case 3: {
      const wire = wireOf(random);
      const expected = new Array<Expected>(count).fill(wire.expected);
      const play = (socket: Socket, items: readonly number[]): void =>
        wire.say(socket, single ? soundSingle : soundBatch(items.length));
      return { number, kind: `wire: ${wire.kind}`, single, expected, play };
    }
    default:
      return single ? dataCase(number, random) : itemsCase(number, count, random);
  }
}

function bodyCase(number: number, single: boolean, count: number, random: Seeded): MalformedCase {
  const seed = random.next();
  const reply = (queries: number): Reply => bodyOf(new Seeded(seed), single ? soundSingle : soundBatch(queries));
  return {
    ...{ number, kind: 'body', single, expected: new Array<Expected>(count).fill(reply(count).expected) },
    play: (socket, items) => {
      const { headers, body } = reply(items.length);
      say(socket, http(200, body, headers));
    },
  };
}

function dataCase(number: number, random: Seeded): MalformedCase {
  const { data, expected } = dataOf(random);
  const play = (socket: Socket): void => say(socket, http(200, JSON.stringify({ ok: true, data })));
  return { number, kind: 'data', single: true, expected: [expected], play };
}

function itemsCase(number: number, count: number, random: Seeded): MalformedCase {
  const items = Array.from({ length: count }, () => itemOf(random));
  const reversed = random.chance(2);
  const play = (socket: Socket, asked: readonly number[]): void => {
    const parts = asked.map((item, index) => (items[item] as Item).text(index));
    if (reversed) parts.reverse();
    say(socket, http(200, `{"ok":true,"data":{"platform_id":1,"results":[${parts.flat().join(',')}]}}`));
  };
  return { number, kind: 'items', single: false, expected: items.map((one) => one.expected), play };
}
