// The Redis of a farm under fire: ours to kill, to stop, to fill and to start again on the same folder, with the
// append-only file of production. A password keeps the machine's other users out of its links.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { missingError } from '../../shared/errors.ts';
import { boundToUs } from './bound.ts';

const CONF = fileURLToPath(new URL('../../../infra/redis.conf', import.meta.url));
const START_MS = 20_000;
const ASK_MS = 3_000;

export class LedgerServer {
  readonly socket: string;
  readonly password = randomBytes(12).toString('hex');
  /** Ours, beside the links: null answers while it is away are the caller's to expect. */
  readonly admin: Redis;
  private readonly folder: string;
  private server: { child: ChildProcess; ended: Promise<void> } | null = null;

  /** `room` has its socket, `disk` what it writes. */
  constructor(room: string, disk: string) {
    this.folder = path.join(disk, 'redis-data');
    this.socket = path.join(room, 'redis.sock');
    mkdirSync(this.folder, { mode: 0o700 });
    this.admin = new Redis({
      path: this.socket,
      password: this.password,
      lazyConnect: true,
      retryStrategy: () => 100,
      maxRetriesPerRequest: 0,
      commandTimeout: ASK_MS,
    });
    this.admin.on('error', () => {});
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    if (this.server !== null) return;
    const args = ['--port', '0', '--unixsocket', this.socket, '--unixsocketperm', '700', '--dir', this.folder];
    const [command, ...rest] = boundToUs(['redis-server', CONF, ...args, '--requirepass', this.password]);
    const child = spawn(command, rest, {
      stdio: 'ignore',
      cwd: this.folder,
    });
    const ended = new Promise<void>((resolve) => {
      child.once('error', () => resolve());
      child.once('exit', () => resolve());
    });
    const server = { child, ended };
    this.server = server;
    void ended.then(() => {
      if (this.server === server) this.server = null;
    });
    const deadline = performance.now() + START_MS;
    for (;;) {
      if (this.admin.status === 'wait') await this.admin.connect().catch(() => {});
      if ((await this.admin.ping().catch(() => '')) === 'PONG') return;
      if (performance.now() > deadline)
        throw missingError(
          'redis_start',
          'the Redis under fire did not start',
          'is redis-server installed? ./farm demo installs it',
        );
      await wait(50);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.server?.child.kill(signal);
  }

  async kill(): Promise<void> {
    const server = this.server;
    if (server === null) return;
    server.child.kill('SIGKILL');
    await server.ended;
  }

  /** Of a server that is killed: the last bytes of what it wrote are gone, half of its latest file at most. Gives how many. */
  forget(bytes: number): number {
    const folder = path.join(this.folder, 'appendonlydir');
    const numbered = readdirSync(folder).flatMap((name) => {
      const number = /\.(\d+)\.incr\.aof$/.exec(name)?.[1];
      return number === undefined ? [] : [{ file: path.join(folder, name), number: Number(number) }];
    });
    const latest = numbered.sort((a, b) => a.number - b.number).at(-1);
    if (latest === undefined) return 0;
    const { size } = statSync(latest.file);
    const cut = Math.min(bytes, Math.floor(size / 2));
    truncateSync(latest.file, size - cut);
    return cut;
  }

  async close(): Promise<void> {
    this.admin.disconnect();
    await this.kill();
  }
}
