// The S3 server answers errors, is slow, silent or gone, loses uploads or answers, or lies about success.

import type { Fault } from '../fault.ts';
import type { S3State } from '../s3-front.ts';
import type { S3Server } from '../s3-server.ts';
import type { Visible } from '../sight.ts';

const WAITED_FOR: Visible = {
  status: /waiting for the store|the store/,
  top: /waiting for the store|the store/,
  log: /waiting for the store|the store/,
  withinMs: 45_000,
};

export class S3Fault implements Fault {
  readonly what: string;
  readonly visible: Visible | null;
  private readonly server: S3Server;
  private readonly state: S3State | 'killed';

  /** `outage`: nothing is stored or read while it lasts. */
  constructor(server: S3Server, state: S3State | 'killed', outage: boolean) {
    this.server = server;
    this.state = state;
    this.what = `S3: ${state === 'killed' ? state : 'code' in state ? `${state.status} ${state.code}` : state.kind}`;
    this.visible = outage ? WAITED_FOR : null;
  }

  async begin(): Promise<void> {
    if (this.state === 'killed') await this.server.kill();
    else this.server.front.set(this.state);
  }

  async heal(): Promise<void> {
    if (this.state === 'killed') await this.server.start();
    else this.server.front.set({ kind: 'good' });
  }
}
