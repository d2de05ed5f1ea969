// What stands before the S3 server of a farm under fire, and misbehaves as such servers and the way to them do. Requests are
// passed on as they are signed; while nothing is wrong they stream.

import type http from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { claimStored, Front, passOn, refuse } from './front.ts';

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
  private readonly target: number;
  private readonly front = new Front((request, response) => this.serve(request, response));
  private state: S3State = GOOD;
  private uploads = 0;

  private constructor(target: number) {
    this.target = target;
  }

  static async open(target: number): Promise<S3Front> {
    const opened = new S3Front(target);
    await opened.front.listen();
    return opened;
  }

  get endpoint(): string {
    return this.front.endpoint;
  }

  set(state: S3State): void {
    this.state = state;
    // What hung is let go: whoever waits tries again.
    if (state.kind === 'good') this.front.cut();
  }

  close(): Promise<void> {
    return this.front.close();
  }

  private async serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { state } = this;
    const upload = request.method === 'PUT' || request.method === 'POST';
    switch (state.kind) {
      case 'answer':
        request.resume();
        refuse(request, response, state);
        return;
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
        claimStored(response);
        return;
      case 'slow':
        await wait(state.ms);
        break;
    }
    await this.pass(request, response, state.kind === 'deaf' && upload);
  }

  private pass(request: http.IncomingMessage, response: http.ServerResponse, lost: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const passed = passOn(request, this.target);
      passed.once('response', (answer) => {
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
