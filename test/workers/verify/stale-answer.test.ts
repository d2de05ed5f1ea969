// A platform, or a proxy in front of it, that says more on a connection than it was asked for: what is left over must
// never be taken for the answer to the next query on that connection.

import net, { type AddressInfo, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import type { ValueMap } from '../../../src/shared/json/value.ts';
import { PlatformCaller } from '../../../src/workers/verify/platform-call.ts';
import { queryOf } from '../../support/fleet.ts';
import { permitted } from '../../support/stub-platform.ts';
import { until } from '../../support/until.ts';

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function answer(decision: string): string {
  const body = JSON.stringify({ ok: true, data: { ...permitted('q'), decision } });
  return `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** Answers each request on each connection with its number there, and says `more` after the first one. */
async function startTalkative(more: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let requests = 0;
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => {
      if (!bytes.toString('latin1').includes('\r\n\r\n')) return;
      requests++;
      socket.write(answer(requests === 1 ? 'first' : 'later'));
      if (requests === 1) more(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  ['in the same breath', 0],
  ['while the connection rests', 30],
])('an answer that nobody asked for, %s, is nobody’s answer', async (_, delayMs) => {
  let said = false;
  const baseUrl = await startTalkative((socket) => {
    const stale = (): void => {
      socket.write(answer('stale'));
      said = true;
    };
    if (delayMs === 0) stale();
    else setTimeout(stale, delayMs);
  });
  const caller = new PlatformCaller({ baseUrl, platformId: 1n, apiKey: 'at_stale' });
  closing.push(() => caller.close());
  const ask = async (): Promise<string> => {
    const { meanings } = await caller.call([queryOf('q')], true, { timeoutMs: 20_000, now: 0 });
    const [meaning] = meanings;
    return meaning?.kind === 'verdict' ? String((meaning.data as ValueMap).get('decision')) : (meaning?.kind ?? '');
  };
  expect(await ask()).toBe('first');
  await until('the other one was said', () => said);
  const next: string[] = [];
  for (let i = 0; i < 5; i++) next.push(await ask());
  expect(next).not.toContain('stale');
});
