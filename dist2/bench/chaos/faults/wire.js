// The wire between processes and what they depend on: slow to everybody, cut for one of them (nothing is refused, nothing
// answers, while all others go on), or the cable of another machine pulled.
export class WireFault {
    visible = null;
    what;
    links;
    state;
    constructor(what, links, state) {
        this.what = what;
        this.links = links;
        this.state = state;
    }
    async begin() {
        for (const link of this.links)
            link.set(this.state);
    }
    async heal() {
        for (const link of this.links)
            link.set({ kind: 'good' });
    }
}
export class CableFault {
    visible = null;
    what = 'the cable of another machine';
    rack;
    constructor(rack) {
        this.rack = rack;
    }
    begin() {
        return this.rack.cut(true);
    }
    heal() {
        return this.rack.cut(false);
    }
}
