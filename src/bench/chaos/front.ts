// What stands before an S3 server and misbehaves as such servers and the way to them do: how it listens, what it says in the
// server's place, and how it passes a request on as it is signed. What becomes of which request is for others to say.

import http from 'node:http';
import type { AddressInfo } from 'node:net';

export type Serve = (request: http.IncomingMessage, response: http.ServerResponse) => Promise<void>;

export class Front {
  private readonly server: http.Server;

  constructor(serve: Serve) {
    this.server = http.createServer((request, response) => {
      void serve(request, response).catch(() => response.destroy());
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(0, '127.0.0.1', resolve);
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Whoever waits is let go. */
  cut(): void {
    this.server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export interface Refusal {
  status: number;
  code: string;
  message?: string;
  headers?: Record<string, string>;
}

/** An S3 error. An answer to HEAD has no body. */
export function refuse(to: http.IncomingMessage, response: http.ServerResponse, refusal: Refusal): void {
  const { status, code, message = code, headers = {} } = refusal;
  response.writeHead(status, { 'content-type': 'application/xml', ...headers });
  const text = `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  response.end(to.method === 'HEAD' ? undefined : text);
}

/** That something was stored. */
export function claimStored(response: http.ServerResponse): void {
  response.writeHead(200, { etag: '"d41d8cd98f00b204e9800998ecf8427e"' });
  response.end();
}

/** The same request to the server at `port`; its body is for the caller to send. */
export function passOn(request: http.IncomingMessage, port: number): http.ClientRequest {
  const { expect: _, ...headers } = request.headers;
  return http.request({ host: '127.0.0.1', port, method: request.method, path: request.url, headers });
}
