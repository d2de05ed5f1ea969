// Malformed answers of a platform, one for each number, and what the table says each means. The server speaks TCP, not
// HTTP, so that it can say what no server should.

import net, { type AddressInfo, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Seeded } from './seeded.ts';
import { permitted } from './stub-platform.ts';

/** `any`: nobody says what it means; it must not earn what a certified right answer earns. */
export type Expected = 'right' | 'uncertified' | 'denial' | 'plain denial' | 'none' | 'refused' | 'any';

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
const CUT = Symbol('cut');

function http(status: number, body: Buffer | string, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body as string);
  const own = headers.some((line) => /^(content-length|transfer-encoding):/i.test(line));
  const lines = [`HTTP/1.1 ${status} X`, ...headers, ...(own ? [] : [`content-length: ${bytes.length}`]), '', ''];
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), bytes]);
}

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
/** A sound text with one more member in its outermost object. */
const withMember = (text: string, member: string): string => `{${member},${text.slice(1)}`;

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

/** Writes pieces with a turn of the loop in between; CUT destroys the connection. */
function say(socket: Socket, ...pieces: (Buffer | string | typeof CUT)[]): void {
  for (const piece of pieces) {
    if (piece === CUT) setImmediate(() => socket.destroy());
    else socket.write(piece);
  }
}

const SLOW_KINDS = 5;

/** How bytes travel: framing, headers, time. */
function wireOf(random: Seeded): { kind: string; expected: Expected; say: (socket: Socket, sound: string) => void } {
  const wire = (kind: string, expected: Expected, how: (socket: Socket, sound: string) => void) => ({
    kind,
    expected,
    say: how,
  });
  const closing = 'connection: close';
  const chunked = (sound: string): string => `${sound.length.toString(16)}\r\n${sound}\r\n0\r\n\r\n`;
  const head = (lines: string): string => `HTTP/1.1 200 OK\r\n${lines}\r\n\r\n`;
  const usual = [
    wire('length too long', 'none', (s, t) =>
      say(s, head(`content-length: ${t.length + 1 + random.below(99)}`), t, CUT),
    ),
    wire('length too short', 'none', (s, t) =>
      say(s, http(200, t, [`content-length: ${random.below(t.length - 1)}`, closing]), CUT),
    ),
    wire('length is no number', 'none', (s, t) =>
      say(s, http(200, t, [`content-length: ${random.pick(['x', '-1', '1e3', '1,2', '0x9'])}`]), CUT),
    ),
    wire('two lengths', 'none', (s, t) =>
      say(s, http(200, t, ['content-length: 5', `content-length: ${t.length}`]), CUT),
    ),
    wire('length and chunks', 'any', (s, t) =>
      say(s, http(200, chunked(t), ['content-length: 7', 'transfer-encoding: chunked']), CUT),
    ),
    wire('chunks', 'right', (s, t) => say(s, http(200, chunked(t), ['transfer-encoding: chunked']))),
    wire('chunks cut', 'none', (s, t) =>
      say(s, http(200, chunked(t).slice(0, -1 - random.below(t.length)), ['transfer-encoding: chunked']), CUT),
    ),
    wire('chunks of no size', 'none', (s, t) =>
      say(
        s,
        http(200, chunked(t).replace(/^\w+/, random.pick(['zz', '-5', '', 'ffffffffffffffffffff'])), [
          'transfer-encoding: chunked',
        ]),
        CUT,
      ),
    ),
    wire('until the end', 'right', (s, t) => void s.end(`${head(closing)}${t}`)),
    wire(
      'until the end, cut',
      'none',
      (s, t) => void s.end(`${head(closing)}${t.slice(0, -1 - random.below(t.length))}`),
    ),
    wire('no HTTP', 'none', (s) =>
      say(
        s,
        random.pick<Buffer | string>([
          random.bytes(50),
          'hello\r\n\r\n',
          'HTTP/9.9 x\r\n\r\n',
          'HTTP/1.1 20\r\n\r\n',
          '{}',
        ]),
        CUT,
      ),
    ),
    wire('a header without a colon', 'none', (s, t) => say(s, http(200, t, ['no colon here']), CUT)),
    wire('a header with a NUL', 'none', (s, t) => say(s, http(200, t, ['x: a\u0000b']), CUT)),
    wire('5,000 headers', 'none', (s, t) =>
      say(
        s,
        http(
          200,
          t,
          Array.from({ length: 5_000 }, (_, i) => `x-${i}: y`),
        ),
        CUT,
      ),
    ),
    wire('information first', 'right', (s, t) =>
      say(s, 'HTTP/1.1 100 Continue\r\n\r\n', `HTTP/1.1 10${random.pick([2, 3])} X\r\nlink: x\r\n\r\n`, http(200, t)),
    ),
    wire('information only', 'none', (s) => say(s, `HTTP/1.1 ${random.pick([100, 102, 103, 199])} X\r\n\r\n`, CUT)),
    wire('another protocol', 'none', (s, t) =>
      say(s, `HTTP/1.1 101 X\r\nupgrade: ${random.pick(['websocket', 'h2c'])}\r\nconnection: upgrade\r\n\r\n`, t, CUT),
    ),
    wire('reset', 'none', (s) => void s.resetAndDestroy()),
    wire('closed', 'none', (s) => void s.end()),
    wire('two answers', 'right', (s, t) =>
      say(s, Buffer.concat([http(200, t), http(200, soundSingle.replace('permit', 'deny'))])),
    ),
    wire('a body for 204', 'none', (s, t) => say(s, http(204, t), CUT)),
  ];
  const slow = [
    wire('a header of 1 MB', 'none', (s, t) => say(s, http(200, t, [`x: ${'y'.repeat(1024 * 1024)}`]), CUT)),
    wire('50 MB', 'none', (s) => flood(s, 50)),
    wire('a sound answer of 5 MB', 'right', (s, t) =>
      say(s, http(200, withMember(t, `"pad":"${'x'.repeat(5 * 1024 * 1024)}"`))),
    ),
    wire('a trickle', 'none', (s, t) => trickle(s, head(`content-length: ${t.length}`) + t)),
    wire('nothing', 'none', () => {}),
  ];
  return random.chance(150) ? (slow[random.below(SLOW_KINDS)] as (typeof slow)[0]) : random.pick(usual);
}

function flood(socket: Socket, megabytes: number): void {
  const piece = Buffer.alloc(1024 * 1024, 'x');
  socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${(megabytes + 1) * piece.length}\r\n\r\n{"ok":true,"data":{"x":"`);
  let sent = 0;
  const more = (): void => {
    while (sent < megabytes && !socket.destroyed) {
      sent++;
      if (!socket.write(piece)) return void socket.once('drain', more);
    }
  };
  more();
}

function trickle(socket: Socket, text: string): void {
  let at = 0;
  const timer = setInterval(() => {
    if (socket.destroyed || at >= text.length) clearInterval(timer);
    else socket.write(text.slice(at, ++at));
  }, 100);
  socket.once('close', () => clearInterval(timer));
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

export interface MalformedServer {
  baseUrl: string;
  /** Paths that no call has: a redirect was followed. */
  strayed: string[];
  close(): Promise<void>;
}

/** Answers by the numbers in the queries: `case N item M`. */
export async function startMalformed(): Promise<MalformedServer> {
  const sockets = new Set<Socket>();
  const strayed: string[] = [];
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    let text = '';
    socket.setEncoding('latin1').on('data', (piece) => {
      text += piece;
      const end = text.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
      if (end === -1 || text.length < end + 4 + length) return;
      const request = text;
      text = '';
      answer(socket, request.split(' ')[1] as string, request.slice(end));
    });
  });
  function answer(socket: Socket, path: string, body: string): void {
    const asked = [...body.matchAll(/"age": ?"case (\d+) item (\d+)"/g)].map((match) => [
      Number(match[1]),
      Number(match[2]),
    ]);
    const call = /^\/api\/v1\/platforms\/1\/(query|query-batch)$/.exec(path)?.[1];
    if (call === undefined || asked.length === 0) return void strayed.push(path);
    const one = malformedCase((asked[0] as number[])[0] as number);
    if (one.single && call === 'query-batch') socket.write(http(404, 'no such path'));
    else
      one.play(
        socket,
        asked.map(([, item]) => item as number),
      );
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1_024, resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    strayed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
