// The Docker engine behind a socket of the test's own, which can stand still, or answer in the engine's place. Bytes are passed on
// as they come; a request is known by its first line, which a client sends at the beginning of a chunk.

import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

const ENGINE = '/var/run/docker.sock';
const REQUEST = /^(GET|POST|PUT|DELETE|HEAD) (?:\/v[0-9.]+)?([^ ?]*)\S* HTTP\/1\.1\r\n/;

export type Fault = { status: number; message: string } | 'hang' | null;

export class EngineProxy {
  readonly address: string;
  /** What becomes of a request; `path` without version and query. */
  fault: (method: string, path: string) => Fault = () => null;
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'farm-test-engine-'));
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  /** Connections that hang by `fault`. */
  private readonly held = new Set<() => void>();
  /** Requests for a box that wait until more are admitted, the first first. */
  private readonly line: (() => void)[] = [];
  private readonly boxes = { most: Number.POSITIVE_INFINITY, made: 0 };
  private silent = false;

  private constructor() {
    this.address = `unix://${this.folder}/engine.sock`;
    this.server = createServer((client) => this.pass(client));
  }

  static async start(): Promise<EngineProxy> {
    const proxy = new EngineProxy();
    await new Promise<void>((resolve) => proxy.server.listen(proxy.address.slice('unix://'.length), resolve));
    return proxy;
  }

  /** Nothing is answered any more, and no stream says another byte. */
  silence(): void {
    this.silent = true;
    for (const socket of this.sockets) socket.pause();
  }

  speak(): void {
    this.silent = false;
    for (const socket of this.sockets) socket.resume();
    this.release();
  }

  /** Lets the requests go on that hang by `fault`. */
  release(): void {
    for (const go of this.held) go();
    this.held.clear();
  }

  /** So many boxes are made from the beginning on, and no more until more are admitted. */
  admit(most = Number.POSITIVE_INFINITY): void {
    this.boxes.most = most;
    while (this.line.length > 0 && this.boxes.made < most) {
      this.boxes.made++;
      this.line.shift()?.();
    }
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Whoever waits no more makes no box. */
  private leave(go: () => void): void {
    const at = this.line.indexOf(go);
    if (at >= 0) this.line.splice(at, 1);
  }

  private pass(client: Socket): void {
    const engine = connect(ENGINE);
    let swallowing = false;
    for (const [from, to] of [
      [client, engine],
      [engine, client],
    ] as const) {
      this.sockets.add(from);
      from.on('error', () => {});
      from.on('close', () => {
        this.sockets.delete(from);
        to.destroy();
      });
      from.on('end', () => to.end());
      if (this.silent) from.pause();
    }
    engine.on('data', (chunk: Buffer) => client.write(chunk));
    client.on('data', (chunk: Buffer) => {
      const [, method, asked] = REQUEST.exec(chunk.toString('latin1')) ?? [];
      if (method === undefined || asked === undefined) {
        if (!swallowing) engine.write(chunk);
        return;
      }
      const fault = this.fault(method, asked);
      swallowing = fault !== null && fault !== 'hang';
      const go = (): void => {
        engine.write(chunk);
        client.resume();
      };
      if (fault === null && method === 'POST' && asked === '/containers/create') {
        client.pause();
        this.line.push(go);
        client.once('close', () => this.leave(go));
        this.admit(this.boxes.most);
      } else if (fault === null) engine.write(chunk);
      else if (fault === 'hang') {
        client.pause();
        this.held.add(go);
      } else {
        const body = JSON.stringify({ message: fault.message });
        client.write(
          `HTTP/1.1 ${fault.status} Fault\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        );
      }
    });
  }
}
