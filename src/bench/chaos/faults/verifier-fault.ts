// The verifier is down, asks to be asked more slowly (429), or answers garbage.

import type { Fault } from '../fault.ts';
import type { Visible } from '../sight.ts';
import type { Misbehaviour, Verifier } from '../verifier.ts';

const SHUT = /breaker (open|half_open)/;
const LIMITED = /rate limited|breaker (open|half_open)/;

export class VerifierFault implements Fault {
  readonly what: string;
  readonly visible: Visible;
  private readonly verifier: Verifier;
  private readonly kind: Misbehaviour | 'down';

  constructor(verifier: Verifier, kind: Misbehaviour | 'down') {
    this.verifier = verifier;
    this.kind = kind;
    this.what = `the verifier: ${kind}`;
    const says = kind === 'rate_limit' ? LIMITED : SHUT;
    this.visible = { status: says, top: says, log: /verifier|upstream|breaker/i, withinMs: 60_000 };
  }

  begin(): Promise<void> {
    return this.kind === 'down' ? this.verifier.down() : this.verifier.behave(this.kind);
  }

  heal(): Promise<void> {
    return this.verifier.behave(null);
  }
}
