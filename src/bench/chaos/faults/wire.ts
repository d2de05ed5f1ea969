// The wire between processes and what they depend on: slow to everybody, cut for one of them (nothing is refused, nothing
// answers, while all others go on), or the cable of another machine pulled.

import type { Fault } from '../fault.ts';
import type { Link, LinkState } from '../link.ts';
import type { Rack } from '../rack.ts';
import type { Visible } from '../sight.ts';

export class WireFault implements Fault {
  visible: Visible | null = null;
  readonly what: string;
  private readonly links: readonly Link[];
  private readonly state: LinkState;
  private readonly look: () => Promise<Visible | null>;

  constructor(what: string, links: readonly Link[], state: LinkState, look: () => Promise<Visible | null>) {
    this.what = what;
    this.links = links;
    this.state = state;
    this.look = look;
  }

  async begin(): Promise<void> {
    for (const link of this.links) link.set(this.state);
    this.visible = await this.look();
  }

  async heal(): Promise<void> {
    for (const link of this.links) link.set({ kind: 'good' });
  }
}

export class CableFault implements Fault {
  visible: Visible | null = null;
  readonly what = 'the cable of another machine';
  private readonly rack: Rack;
  private readonly look: () => Promise<Visible | null>;

  constructor(rack: Rack, look: () => Promise<Visible | null>) {
    this.rack = rack;
    this.look = look;
  }

  async begin(): Promise<void> {
    await this.rack.cut(true);
    this.visible = await this.look();
  }

  heal(): Promise<void> {
    return this.rack.cut(false);
  }
}
