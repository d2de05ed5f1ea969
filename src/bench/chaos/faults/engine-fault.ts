// The Docker engine hangs (it takes connections and answers nothing) or is gone (it refuses them), for this farm alone.

import type { Fault } from '../fault.ts';
import type { Link } from '../link.ts';
import type { Visible } from '../sight.ts';

export class EngineFault implements Fault {
  readonly what: string;
  readonly visible: Visible = {
    status: /paused[\s\S]*engine/i,
    top: /engine/i,
    log: /engine/i,
    withinMs: 60_000,
  };
  private readonly link: Link;
  private readonly kind: 'silent' | 'gone';

  constructor(link: Link, kind: 'silent' | 'gone') {
    this.link = link;
    this.kind = kind;
    this.what = `the engine is ${kind}`;
  }

  async begin(): Promise<void> {
    this.link.set({ kind: this.kind });
  }

  async heal(): Promise<void> {
    this.link.set({ kind: 'good' });
  }
}
