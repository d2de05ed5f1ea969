// A proxy before an S3 server that misbehaves as real ones and the way to them do: it answers in the server's place, cuts
// what comes and goes, changes it, stands still, or says yes and does nothing. Requests are passed on as they are signed, but
// for a condition that is forgotten: that one needs a server that looks at no signatures.

import type http from 'node:http';
import { claimStored, Front, passOn, type Refusal, refuse } from '../../src/bench/chaos/front.ts';
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
  | ({ kind: 'answer' } & Refusal)
  /** Success, and nothing was stored. */
  | { kind: 'lie' }
  /** The connection ends while the request's body is on its way. */
  | { kind: 'cut_request' }
  /** The answer ends after its head and half of its body. */
  | { kind: 'cut_answer' }
  /** The server does it, and its answer is lost. `done`: called when it has done it. */
  | { kind: 'lose_answer'; done?: () => void }
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
  private readonly front = new Front((request, response) => this.pass(request, response));

  private constructor(target: number) {
    this.target = target;
  }

  static async start(target: number): Promise<S3Proxy> {
    const proxy = new S3Proxy(target);
    await proxy.front.listen();
    return proxy;
  }

  get endpoint(): string {
    return this.front.endpoint;
  }

  /** The first `times` requests that fit get it. */
  first(times: number, fits: (seen: Seen) => boolean, misdeed: Misdeed): void {
    let left = times;
    this.misdeed = (seen) => (fits(seen) && left-- > 0 ? misdeed : null);
  }

  async requests(what: string, fits: (seen: Seen) => boolean, count = 1): Promise<void> {
    await until(what, () => this.seen.filter(fits).length >= count);
  }

  close(): Promise<void> {
    return this.front.close();
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
      refuse(request, response, misdeed);
      return;
    }
    if (misdeed?.kind === 'lie') {
      claimStored(response);
      return;
    }
    if (misdeed?.kind === 'flip_request') flip(body);
    if (misdeed?.kind === 'forget_condition') {
      await misdeed.held;
      delete request.headers['if-none-match'];
    }
    const answer = await this.forward(request, body);
    if (misdeed?.kind === 'lose_answer') {
      misdeed.done?.();
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
      const passed = passOn(request, this.target);
      passed.on('response', (answer) => {
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
