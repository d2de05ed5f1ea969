import net from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { type Simulator, startSimulator } from '../../src/simulator/server.ts';
import { call, completion, post, startGateway, type TestGateway } from '../support/gateway-fixture.ts';
import { until } from '../support/until.ts';

const MB = 1024 * 1024;
let simulator: Simulator;
let gateway: TestGateway;
let senders: Sender[] = [];

async function start(limits: object, misbehave?: string): Promise<void> {
  simulator = await startSimulator(misbehave === undefined ? {} : { misbehave });
  gateway = await startGateway({ baseUrl: simulator.baseUrl, limits });
}
afterEach(async () => {
  for (const { socket } of senders) socket.destroy();
  senders = [];
  await gateway.close();
  await simulator.close();
});

interface Sender {
  socket: net.Socket;
  answer: string;
}
/** Sends these bytes of a body, and never its end. */
function unfinished(header: string, ...pieces: Buffer[]): Sender {
  return unfinishedOf('/get_reward', header, ...pieces);
}
function unfinishedOf(path: string, header: string, ...pieces: Buffer[]): Sender {
  const socket = net.connect(gateway.port, '127.0.0.1');
  const sender = { socket, answer: '' };
  socket
    .on('error', () => {})
    .on('data', (data) => {
      sender.answer += data.toString('latin1');
    });
  socket.write(`POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n${header}\r\n\r\n`);
  for (const piece of pieces) socket.write(piece);
  senders.push(sender);
  return sender;
}
/** Nobody is cut for being slow: what makes room is the bound of memory alone. */
const PATIENT = { bodyIdleMs: 150_000, pace: { graceMs: 150_000, overMs: 150_000, bytesPerS: 1 } };
const CHUNKED = 'transfer-encoding: chunked';
function chunk(bytes: number): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), Buffer.alloc(bytes, 32), Buffer.from('\r\n')]);
}
const honest = (age: number) => post(`${gateway.url}/get_reward`, { query: [completion(age)], prompts: [''] });

async function held(): Promise<number> {
  const { text } = await call(`${gateway.url}/metrics`);
  return Number(/farm_gateway_body_bytes\{call="get_reward"\} (\S+)/.exec(text)?.[1]);
}

/** The most that is held while `work` lasts. */
async function mostHeld(work: Promise<unknown>): Promise<number> {
  let most = 0;
  let over = false;
  const ended = work.finally(() => {
    over = true;
  });
  while (!over) most = Math.max(most, await held());
  await ended;
  return most;
}

describe('bodies of /get_reward that never end', () => {
  test('are refused at 4 MB each, chunked or announced, and memory stays where it was', async () => {
    await start({});
    expect((await post(`${gateway.url}/get_reward`, Buffer.alloc(4 * MB + 1, 32))).status).toBe(413);
    const piece = chunk(MB);
    const before = process.memoryUsage().rss;
    const many = Array.from({ length: 14 }, () => unfinished(CHUNKED, ...Array.from({ length: 60 }, () => piece)));
    let rss = before;
    await until(
      'all are refused',
      () => {
        rss = Math.max(rss, process.memoryUsage().rss);
        return many.every(({ answer }) => answer.startsWith('HTTP/1.1 413'));
      },
      { withinMs: 60_000 },
    );
    expect((rss - before) / MB).toBeLessThan(160);
    expect(await held()).toBe(0);
  });

  test('below that are cut, the largest and slowest, before memory is over; small honest ones are all answered', async () => {
    await start({ bytes: 16 * MB, ...PATIENT });
    const attack = Array.from({ length: 30 }, () => unfinished(CHUNKED, chunk(3 * MB)));
    await expect.poll(held).toBeGreaterThan(8 * MB);
    const modest = unfinished('content-length: 2000', Buffer.alloc(100, 32));
    const began = performance.now();
    const answers = Promise.all(Array.from({ length: 60 }, (_, i) => honest(i)));
    const most = await mostHeld(answers);
    expect((await answers).map(({ status }) => status)).toEqual(Array(60).fill(200));
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(most).toBeLessThan(16 * MB + 4 * MB);
    // A refused sender is told after a while, in which it may send on.
    await until('one is told', () =>
      attack.some(({ answer }) => /^HTTP\/1.1 408 [\s\S]*largest and slowest/.test(answer)),
    );
    expect(modest.answer).toBe('');
  });

  test('reserve nothing by what they announce', async () => {
    await start({ bytes: 4 * MB, ...PATIENT });
    for (let i = 0; i < 20; i++) unfinished(`content-length: ${4 * MB - 1}`, Buffer.from('{'));
    await expect.poll(held).toBe(20);
    const began = performance.now();
    const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => honest(i)));
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(performance.now() - began).toBeLessThan(60_000);
  });

  test('or that trickle are cut, also after a quick beginning; a slow one above the pace is served', async () => {
    await start({ pace: { graceMs: 500, overMs: 1_000, bytesPerS: 1_024 } });
    const trickles = [Buffer.from('{'), Buffer.alloc(100_000, 32)].map((first) =>
      unfinished('content-length: 200000', first),
    );
    const text = JSON.stringify({ query: ['no block'] }).padEnd(20_000);
    const slow = unfinished(`content-length: ${text.length}`);
    let sent = 0;
    const timer = setInterval(() => {
      for (const { socket } of trickles) socket.write(' ');
      if (sent < text.length) slow.socket.write(text.slice(sent, sent + 1_000));
      sent += 1_000;
    }, 150);
    try {
      const answers = (): string[] => [...trickles, slow].map(({ answer }) => answer.slice(0, 13));
      await expect.poll(answers, { timeout: 60_000 }).toEqual(['HTTP/1.1 408 ', 'HTTP/1.1 408 ', 'HTTP/1.1 200 ']);
    } finally {
      clearInterval(timer);
    }
  });
});

test('small bodies that inflate wait for their room before they do', async () => {
  await start({ bytes: 8 * MB, rewardAnswerMs: 2_000 }, '{"fail": [{"kind": "hang"}]}');
  const packed = gzipSync(JSON.stringify({ query: [completion(30)], labels: [' '.repeat(3 * MB)] }));
  const headers = { 'content-encoding': 'gzip' };
  const all = Promise.all(Array.from({ length: 12 }, () => post(`${gateway.url}/get_reward`, packed, headers)));
  expect(await mostHeld(all)).toBeLessThan(9 * MB);
  expect(await held()).toBe(0);
});

test('slow senders of /v1/score do not have the others refused by what they announce', async () => {
  await start({});
  for (let i = 0; i < 5; i++) unfinishedOf('/v1/score', `content-length: ${60 * MB}`, Buffer.from('{'));
  await expect
    .poll(async () => (await call(`${gateway.url}/metrics`)).text)
    .toContain('farm_gateway_body_bytes{call="score"} 5\n');
  expect((await post(`${gateway.url}/v1/score`, { prompts: [''], completions: ['no block'] })).status).toBe(200);
});
