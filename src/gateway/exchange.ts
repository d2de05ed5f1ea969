// One request and its answer: when it came, whether its caller is still there, and the few ways in which it is answered.
// A caller that reads too slowly is cut off; nothing is written twice.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpProblem } from './problem.ts';

/** A reader that takes nothing for so long is gone. */
const STALLED_MS = 60_000;

export class CallerGone extends Error {
  constructor() {
    super('the caller has gone');
    this.name = 'CallerGone';
  }
}

export class Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** On the monotonic clock. */
  readonly cameAt = performance.now();
  /** Aborted when the caller has gone before its answer. */
  readonly gone: AbortSignal;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.request = request;
    this.response = response;
    this.method = request.method ?? 'GET';
    const [path, search] = splitOnce(request.url ?? '/', '?');
    this.path = path;
    this.query = new URLSearchParams(search);
    const controller = new AbortController();
    this.gone = controller.signal;
    response.once('close', () => {
      if (!response.writableFinished) controller.abort(new CallerGone());
    });
    response.on('error', () => {});
  }

  get elapsedMs(): number {
    return performance.now() - this.cameAt;
  }

  header(name: string): string | null {
    const value = this.request.headers[name];
    return typeof value === 'string' ? value : null;
  }

  send(status: number, type: string, body: string | Buffer, headers: Record<string, string> = {}): void {
    if (this.response.headersSent || this.response.destroyed) return;
    this.response.writeHead(status, {
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    });
    this.response.end(this.method === 'HEAD' ? undefined : body);
  }

  json(status: number, body: string, headers: Record<string, string> = {}): void {
    this.send(status, 'application/json', body, headers);
  }

  problem(problem: HttpProblem): void {
    this.json(problem.status, problem.body(), problem.headers);
  }

  begin(status: number, type: string): void {
    this.response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
    this.response.flushHeaders();
  }

  /** Writes, and waits until it is taken. Throws CallerGone. */
  async write(text: string | Buffer): Promise<void> {
    if (this.gone.aborted) throw this.gone.reason;
    if (this.response.write(text)) return;
    await new Promise<void>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.response.off('drain', taken);
        this.gone.removeEventListener('abort', left);
      };
      const taken = (): void => {
        end();
        resolve();
      };
      const left = (): void => {
        end();
        reject(this.gone.reason);
      };
      const timer = setTimeout(() => this.response.destroy(), STALLED_MS);
      this.response.once('drain', taken);
      this.gone.addEventListener('abort', left, { once: true });
    });
  }

  end(): void {
    this.response.end();
  }
}

function splitOnce(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
