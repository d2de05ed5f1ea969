// What stands before the S3 server of a farm under fire, and misbehaves as such servers and the way to them do. Requests are
// passed on as they are signed; while nothing is wrong they stream.

import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

export type S3State =
  | { kind: 'good' }
  /** An S3 error in the server's place. */
  | { kind: 'answer'; status: number; code: string }
  /** Every answer comes so much later. */
  | { kind: 'slow'; ms: number }
  /** Nothing ever comes. */
  | { kind: 'silent' }
  /** The connection ends while an upload is on its way. */
  | { kind: 'cut' }
  /** The server does what it is asked, and nobody hears of it. */
  | { kind: 'deaf' }
  /** Success is claimed for every second upload, and nothing is stored. */
  | { kind: 'lie' };

const GOOD: S3State = { kind: 'good' };

export class S3Front {
  private readonly server: http.Server;
  private readonly target: number;
  private state: S3State = GOOD;
  private uploads = 0;

  private constructor(target: number) {
    this.target = target;
    this.server = http.createServer((request, response) => {
      void this.serve(request, response).catch(() => response.destroy());
    });
  }

  static async open(target: number): Promise<S3Front> {
    const front = new S3Front(target);
    await new Promise<void>((resolve, reject) => {
      front.server.once('error', reject);
      front.server.listen(0, '127.0.0.1', resolve);
    });
    return front;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  set(state: S3State): void {
    this.state = state;
    // What hung is let go: whoever waits tries again.
    if (state.kind === 'good') this.server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { state } = this;
    const upload = request.method === 'PUT' || request.method === 'POST';
    switch (state.kind) {
      case 'answer': {
        request.resume();
        const { status, code } = state;
        response.writeHead(status, { 'content-type': 'application/xml' });
        const text = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
        response.end(request.method === 'HEAD' ? undefined : text);
        return;
      }
      case 'silent':
        request.resume();
        return;
      case 'cut':
        if (!upload) break;
        request.once('data', () => request.destroy());
        request.once('end', () => request.destroy());
        request.resume();
        return;
      case 'lie':
        if (!upload || ++this.uploads % 2 === 0) break;
        request.resume();
        response.writeHead(200, { etag: '"d41d8cd98f00b204e9800998ecf8427e"' });
        response.end();
        return;
      case 'slow':
        await wait(state.ms);
        break;
    }
    await this.pass(request, response, state.kind === 'deaf' && upload);
  }

  private pass(request: http.IncomingMessage, response: http.ServerResponse, lost: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const { expect: _, ...headers } = request.headers;
      const options = { host: '127.0.0.1', port: this.target, method: request.method, path: request.url, headers };
      const passed = http.request(options, (answer) => {
        if (lost) {
          answer.resume();
          answer.once('end', () => response.destroy());
          return resolve();
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        answer.once('end', resolve);
        answer.once('error', reject);
      });
      passed.once('error', reject);
      request.pipe(passed);
    });
  }
}
