// The verifier is down, asks to be asked more slowly (429), or answers garbage.
const SHUT = /breaker (open|half_open)/;
const LIMITED = /rate limited|breaker (open|half_open)/;
export class VerifierFault {
    what;
    visible;
    verifier;
    kind;
    constructor(verifier, kind) {
        this.verifier = verifier;
        this.kind = kind;
        this.what = `the verifier: ${kind}`;
        const says = kind === 'rate_limit' ? LIMITED : SHUT;
        this.visible = { status: says, top: says, log: /verifier|upstream|breaker/i, withinMs: 60_000 };
    }
    begin() {
        return this.kind === 'down' ? this.verifier.down() : this.verifier.behave(this.kind);
    }
    heal() {
        return this.verifier.behave(null);
    }
}
