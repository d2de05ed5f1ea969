// A platform over real HTTP whose every answer the test decides, and which counts what reaches it: queries by text,
// calls, and how many were under way at once.

import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface StubCall {
  single: boolean;
  queries: string[];
  /** 1 for the first call. */
  number: number;
}

export interface StubReply {
  status?: number;
  headers?: Record<string, string>;
  /** The whole body; without it every query is permitted. */
  body?: string;
  /** Item by item, for those that are not permitted: an error object, or data. */
  items?: (query: string) => object | null;
  /** Never answers. */
  hang?: boolean;
  /** Half of the body, then the connection goes. */
  cut?: boolean;
  reset?: boolean;
  delayMs?: number;
  /** Answers when this has happened, `delayMs` later. */
  after?: Promise<unknown>;
}

export interface StubPlatform {
  baseUrl: string;
  calls: StubCall[];
  /** How often each query came. */
  asked: Map<string, number>;
  most: number;
  /** Bodies and headers of all requests, to look for what must not be there. */
  keys: Set<string>;
  behave: (call: StubCall) => StubReply | undefined;
  close(): Promise<void>;
}

export async function startStub(behave: StubPlatform['behave'] = () => undefined): Promise<StubPlatform> {
  const sockets = new Set<Socket>();
  let under = 0;
  const stub: Omit<StubPlatform, 'baseUrl'> = {
    calls: [],
    asked: new Map(),
    most: 0,
    keys: new Set(),
    behave,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      stub.keys.add(request.headers.authorization ?? '');
      const body = JSON.parse(Buffer.concat(chunks).toString()) as { query: string; queries?: { query: string }[] };
      const single = body.queries === undefined;
      const queries = body.queries?.map((item) => item.query) ?? [body.query];
      const call: StubCall = { single, queries, number: stub.calls.length + 1 };
      stub.calls.push(call);
      under++;
      stub.most = Math.max(stub.most, under);
      response.once('close', () => under--);
      for (const query of queries) stub.asked.set(query, (stub.asked.get(query) ?? 0) + 1);
      const reply = stub.behave(call) ?? {};
      if (reply.reset) return void response.destroy();
      if (reply.hang) return;
      const text = reply.body ?? JSON.stringify(envelope(single, queries, reply.items));
      const say = (): void => {
        response.writeHead(reply.status ?? 200, { 'content-length': Buffer.byteLength(text), ...reply.headers });
        if (!reply.cut) {
          response.end(text);
          return;
        }
        response.write(text.slice(0, text.length / 2));
        setTimeout(() => response.destroy(), 10);
      };
      void (async () => {
        await reply.after;
        setTimeout(say, reply.delayMs ?? 0);
      })();
    });
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(stub, { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

export function permitted(query: string): object {
  return {
    platform_id: 1,
    query,
    answer: `permit ${query.length}`,
    decision: 'permit',
    proof_checked: true,
    proof_summary: 'proved',
    explanation: { schema_version: 1, confidence: { overall: 1.0 } },
  };
}

/** The error envelope. */
export function fault(code: string, more: object = {}): string {
  return JSON.stringify({ ok: false, error: { code, message: `said ${code}`, ...more } });
}

function envelope(single: boolean, queries: string[], items: StubReply['items']): object {
  const of = (query: string): object => items?.(query) ?? permitted(query);
  if (single) return { ok: true, data: of(queries[0] as string) };
  const results = queries.map((query, index) => {
    const data = of(query);
    return 'code' in data ? { index, status: 'error', error: data } : { index, status: 'ok', data };
  });
  return { ok: true, data: { platform_id: 1, results } };
}
