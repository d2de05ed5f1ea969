// A stretch of wire between two processes, that can be slow, silent, or gone. Silent is what a cut cable and a hung server
// look like: nothing is refused, nothing is answered, and what was sent arrives when it is mended.

import net from 'node:net';

export type LinkState = { kind: 'good' } | { kind: 'slow'; ms: number } | { kind: 'silent' } | { kind: 'gone' };
export type Endpoint = { path: string } | { host: string; port: number };

interface Pair {
  near: net.Socket;
  far: net.Socket | null;
}

export class Link {
  private readonly server: net.Server;
  private readonly pairs = new Set<Pair>();
  private readonly to: Endpoint;
  private state: LinkState = { kind: 'good' };

  private constructor(to: Endpoint) {
    this.to = to;
    this.server = net.createServer((near) => this.accept(near));
  }

  static async open(at: Endpoint, to: Endpoint): Promise<Link> {
    const link = new Link(to);
    await new Promise<void>((resolve, reject) => {
      link.server.once('error', reject);
      link.server.listen(at, resolve);
    });
    return link;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  set(state: LinkState): void {
    this.state = state;
    for (const pair of [...this.pairs]) {
      if (state.kind === 'gone') this.drop(pair);
      else if (state.kind === 'silent') {
        pair.near.pause();
        pair.far?.pause();
      } else {
        this.join(pair);
        pair.near.resume();
        pair.far?.resume();
      }
    }
  }

  close(): Promise<void> {
    for (const pair of [...this.pairs]) this.drop(pair);
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private accept(near: net.Socket): void {
    near.on('error', () => {});
    if (this.state.kind === 'gone') {
      near.destroy();
      return;
    }
    const pair: Pair = { near, far: null };
    this.pairs.add(pair);
    near.once('close', () => this.drop(pair));
    near.pause();
    if (this.state.kind !== 'silent') this.join(pair);
  }

  /** Connects the other end, once. */
  private join(pair: Pair): void {
    if (pair.far !== null || pair.near.destroyed) return;
    const far = net.connect(this.to);
    pair.far = far;
    far.on('error', () => {});
    far.once('close', () => this.drop(pair));
    this.carry(pair.near, far);
    this.carry(far, pair.near);
  }

  /** In order, each piece as late as the wire is slow when it comes. */
  private carry(from: net.Socket, to: net.Socket): void {
    let before: Promise<void> = Promise.resolve();
    let waiting = 0;
    from.on('data', (piece) => {
      const write = (): void => {
        if (to.destroyed || to.write(piece)) return;
        from.pause();
        to.once('drain', () => this.state.kind === 'silent' || from.resume());
      };
      if (this.state.kind !== 'slow' && waiting === 0) return write();
      const ms = this.state.kind === 'slow' ? this.state.ms : 0;
      const due = new Promise<void>((resolve) => setTimeout(resolve, ms));
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

  private drop(pair: Pair): void {
    this.pairs.delete(pair);
    pair.near.destroy();
    pair.far?.destroy();
  }
}
