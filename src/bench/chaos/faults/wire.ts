// The wire between processes and what they depend on: slow to everybody, cut for one of them (nothing is refused, nothing
// answers, while all others go on), or the cable of another machine pulled.

import type { Fault } from '../fault.ts';
import type { Link, LinkState } from '../link.ts';
import type { Rack } from '../rack.ts';

export class WireFault implements Fault {
  readonly visible = null;
  readonly what: string;
  private readonly links: readonly Link[];
  private readonly state: LinkState;

  constructor(what: string, links: readonly Link[], state: LinkState) {
    this.what = what;
    this.links = links;
    this.state = state;
  }

  async begin(): Promise<void> {
    for (const link of this.links) link.set(this.state);
  }

  async heal(): Promise<void> {
    for (const link of this.links) link.set({ kind: 'good' });
  }
}

export class CableFault implements Fault {
  readonly visible = null;
  readonly what = 'the cable of another machine';
  private readonly rack: Rack;

  constructor(rack: Rack) {
    this.rack = rack;
  }

  begin(): Promise<void> {
    return this.rack.cut(true);
  }

  heal(): Promise<void> {
    return this.rack.cut(false);
  }
}
