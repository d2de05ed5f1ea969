// How a malformed answer travels: framing, headers and time, each with what it then means. Raw bytes on a socket, so that
// it can say what no server should.

import type { Socket } from 'node:net';
import type { Seeded } from './seeded.ts';

/** `any`: nobody says what it means; it must not earn what a certified right answer earns. */
export type Expected = 'right' | 'uncertified' | 'denial' | 'plain denial' | 'none' | 'refused' | 'any';

const CUT = Symbol('cut');

export function http(status: number, body: Buffer | string, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body as string);
  const own = headers.some((line) => /^(content-length|transfer-encoding):/i.test(line));
  const lines = [`HTTP/1.1 ${status} X`, ...headers, ...(own ? [] : [`content-length: ${bytes.length}`]), '', ''];
  return Buffer.concat([Buffer.from(lines.join('\r\n'), 'latin1'), bytes]);
}

/** A sound text with one more member in its outermost object. */
export const withMember = (text: string, member: string): string => `{${member},${text.slice(1)}`;

/** Writes pieces with a turn of the loop in between; CUT destroys the connection. */
export function say(socket: Socket, ...pieces: (Buffer | string | typeof CUT)[]): void {
  for (const piece of pieces) {
    if (piece === CUT) setImmediate(() => socket.destroy());
    else socket.write(piece);
  }
}

const SLOW_KINDS = 5;

/** How bytes travel: framing, headers, time. */
export function wireOf(random: Seeded): {
  kind: string;
  expected: Expected;
  say: (socket: Socket, sound: string) => void;
} {
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
      say(s, Buffer.concat([http(200, t), http(200, t.replaceAll('permit', 'deny'))])),
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
