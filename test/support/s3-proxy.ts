// A proxy before an S3 server that misbehaves as real ones and the way to them do: it answers in the server's place, cuts
// what comes and goes, changes it, stands still, or says yes and does nothing. Requests are passed on as they are signed, but
// for a condition that is forgotten: that one needs a server that looks at no signatures.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { until } from './until.ts';

export interface Seen {
  method: string;
  /** Without the query. */
  path: string;
  query: string;
  headers: http.IncomingHttpHeaders;
}

export type Misdeed =
  | null
  /** An S3 error in the server's place. */
  | { kind: 'answer'; status: number; code: string; message?: string; headers?: Record<string, string> }
  /** Success, and nothing was stored. */
  | { kind: 'lie' }
  /** The connection ends while the request's body is on its way. */
  | { kind: 'cut_request' }
  /** The answer ends after its head and half of its body. */
  | { kind: 'cut_answer' }
  /** The server does it, and its answer is lost. */
  | { kind: 'lose_answer' }
  /** One bit of the body is another. */
  | { kind: 'flip_request' }
  | { kind: 'flip_answer' }
  /** As a server that has never heard of If-None-Match, and does not say so. `held`: it waits for this before. */
  | { kind: 'forget_condition'; held?: Promise<unknown> }
  /** Nothing ever comes. */
  | { kind: 'hang' };

export class S3Proxy {
  /** What becomes of a request. */
  misdeed: (seen: Seen) => Misdeed = () => null;
  readonly seen: Seen[] = [];
  private readonly target: number;
  private readonly server: http.Server;

  private constructor(target: number) {
    this.target = target;
    this.server = http.createServer(
      (request, response) => void this.pass(request, response).catch(() => response.destroy()),
    );
  }

  static async start(target: number): Promise<S3Proxy> {
    const proxy = new S3Proxy(target);
    await new Promise<void>((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** The first `times` requests that fit get it. */
  first(times: number, fits: (seen: Seen) => boolean, misdeed: Misdeed): void {
    let left = times;
    this.misdeed = (seen) => (fits(seen) && left-- > 0 ? misdeed : null);
  }

  async requests(what: string, fits: (seen: Seen) => boolean, count = 1): Promise<void> {
    await until(what, () => this.seen.filter(fits).length >= count);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async pass(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const [path = '', query = ''] = (request.url ?? '').split('?');
    const seen: Seen = { method: request.method ?? '', path, query, headers: request.headers };
    this.seen.push(seen);
    const misdeed = this.misdeed(seen);
    if (misdeed?.kind === 'cut_request') {
      request.once('data', () => request.destroy());
      if (request.headers['content-length'] === '0') request.destroy();
      return;
    }
    const body = await bodyOf(request);
    if (misdeed?.kind === 'hang') return;
    if (misdeed?.kind === 'answer') {
      const { status, code, message = code, headers = {} } = misdeed;
      response.writeHead(status, { 'content-type': 'application/xml', ...headers });
      response.end(
        seen.method === 'HEAD'
          ? undefined
          : `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`,
      );
      return;
    }
    if (misdeed?.kind === 'lie') {
      response.writeHead(200, { etag: '"d41d8cd98f00b204e9800998ecf8427e"' });
      response.end();
      return;
    }
    if (misdeed?.kind === 'flip_request') flip(body);
    if (misdeed?.kind === 'forget_condition') {
      await misdeed.held;
      delete request.headers['if-none-match'];
    }
    const answer = await this.forward(request, body);
    if (misdeed?.kind === 'lose_answer') {
      response.destroy();
      return;
    }
    const content = answer.body;
    if (misdeed?.kind === 'flip_answer') flip(content);
    response.writeHead(answer.status, answer.headers);
    if (misdeed?.kind !== 'cut_answer') {
      response.end(content);
      return;
    }
    response.write(content.subarray(0, Math.floor(content.length / 2)), () => response.destroy());
  }

  private forward(
    request: http.IncomingMessage,
    body: Buffer,
  ): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: Buffer }> {
    return new Promise((resolve, reject) => {
      const { expect: _, ...headers } = request.headers;
      const options = { host: '127.0.0.1', port: this.target, method: request.method, path: request.url, headers };
      const passed = http.request(options, (answer) => {
        bodyOf(answer).then(
          (content) => resolve({ status: answer.statusCode ?? 502, headers: answer.headers, body: content }),
          reject,
        );
      });
      passed.on('error', reject);
      passed.end(body);
    });
  }
}

async function bodyOf(stream: http.IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

function flip(body: Buffer): void {
  const at = Math.floor(body.length / 2);
  if (body.length > 0) body[at] = (body[at] as number) ^ 1;
}
