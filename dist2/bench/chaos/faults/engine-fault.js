// The Docker engine hangs (it takes connections and answers nothing) or is gone (it refuses them), for this farm alone.
export class EngineFault {
    what;
    visible = {
        status: /paused[\s\S]*engine/i,
        top: /engine/i,
        log: /engine/i,
        withinMs: 60_000,
    };
    link;
    kind;
    constructor(link, kind) {
        this.link = link;
        this.kind = kind;
        this.what = `the engine is ${kind}`;
    }
    async begin() {
        this.link.set({ kind: this.kind });
    }
    async heal() {
        this.link.set({ kind: 'good' });
    }
}
