// A stretch of wire between two processes, that can be slow, silent, or gone. Silent is what a cut cable and a hung server
// look like: nothing is refused, nothing is answered, and what was sent arrives when it is mended.
import net from 'node:net';
export class Link {
    server;
    pairs = new Set();
    to;
    state = { kind: 'good' };
    constructor(to) {
        this.to = to;
        this.server = net.createServer((near) => this.accept(near));
    }
    static async open(at, to) {
        const link = new Link(to);
        await new Promise((resolve, reject) => {
            link.server.once('error', reject);
            link.server.listen(at, resolve);
        });
        return link;
    }
    get port() {
        return this.server.address().port;
    }
    set(state) {
        this.state = state;
        for (const pair of [...this.pairs]) {
            if (state.kind === 'gone')
                this.drop(pair);
            else if (state.kind === 'silent') {
                pair.near.pause();
                pair.far?.pause();
            }
            else {
                this.join(pair);
                pair.near.resume();
                pair.far?.resume();
            }
        }
    }
    close() {
        for (const pair of [...this.pairs])
            this.drop(pair);
        return new Promise((resolve) => this.server.close(() => resolve()));
    }
    accept(near) {
        near.on('error', () => { });
        if (this.state.kind === 'gone') {
            near.destroy();
            return;
        }
        const pair = { near, far: null };
        this.pairs.add(pair);
        near.once('close', () => this.drop(pair));
        near.pause();
        if (this.state.kind !== 'silent')
            this.join(pair);
    }
    /** Connects the other end, once. */
    join(pair) {
        if (pair.far !== null || pair.near.destroyed)
            return;
        const far = net.connect(this.to);
        pair.far = far;
        far.on('error', () => { });
        far.once('close', () => this.drop(pair));
        this.carry(pair.near, far);
        this.carry(far, pair.near);
    }
    /** In order, each piece as late as the wire is slow when it comes. */
    carry(from, to) {
        let before = Promise.resolve();
        let waiting = 0;
        from.on('data', (piece) => {
            const write = () => {
                if (to.destroyed || to.write(piece))
                    return;
                from.pause();
                to.once('drain', () => this.state.kind === 'silent' || from.resume());
            };
            if (this.state.kind !== 'slow' && waiting === 0)
                return write();
            const ms = this.state.kind === 'slow' ? this.state.ms : 0;
            const due = new Promise((resolve) => setTimeout(resolve, ms));
            waiting++;
            before = before
                .then(() => due)
                .then(() => {
                waiting--;
                write();
            });
        });
        from.once('end', () => void before.then(() => to.end()));
        from.resume();
    }
    drop(pair) {
        this.pairs.delete(pair);
        pair.near.destroy();
        pair.far?.destroy();
    }
}
