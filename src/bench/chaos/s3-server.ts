// The S3 server of a farm under fire: versitygw on a folder, behind a front that misbehaves; ours to kill and to start again.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../../shared/config.ts';
import { missingError } from '../../shared/errors.ts';
import { boundToUs } from './bound.ts';
import { S3Front } from './s3-front.ts';
import { freePort } from './verifier.ts';

const WHERE = fileURLToPath(new URL('../../../infra/s3/build.sh', import.meta.url));
const START_MS = 20_000;
const BUCKET = 'farm-chaos';
const REGION = 'us-east-1';
const KEYS = { access: 'farm-chaos-key', secret: 'farm-chaos-secret-of-forty-characters-xx' };

export class S3Server {
  readonly front: S3Front;
  private readonly command: string;
  private readonly folder: string;
  private readonly port: number;
  private child: ChildProcess | null = null;
  private ended: Promise<void> = Promise.resolve();

  private constructor(front: S3Front, command: string, folder: string, port: number) {
    this.front = front;
    this.command = command;
    this.folder = folder;
    this.port = port;
  }

  static async open(room: string): Promise<S3Server> {
    const folder = path.join(room, 's3');
    // A bucket is a folder of the server's.
    mkdirSync(path.join(folder, BUCKET), { recursive: true });
    const port = await freePort();
    const server = new S3Server(await S3Front.open(port), whereIs(), folder, port);
    await server.start();
    return server;
  }

  /** What a farm that keeps its runs here has in its environment. */
  get environment(): Record<string, string> {
    return {
      FARM_STORE: `s3://${BUCKET}/farm`,
      S3_ENDPOINT: this.front.endpoint,
      AWS_ACCESS_KEY_ID: KEYS.access,
      AWS_SECRET_ACCESS_KEY: KEYS.secret,
      AWS_REGION: REGION,
      AWS_EC2_METADATA_DISABLED: 'true',
    };
  }

  async start(): Promise<void> {
    if (this.child !== null) return;
    const listen = ['--port', `127.0.0.1:${this.port}`, '--region', REGION, '--health', '/health', '--quiet'];
    const [command, ...args] = boundToUs([this.command, ...listen, 'posix', this.folder]);
    const env = childEnvironment({ ROOT_ACCESS_KEY: KEYS.access, ROOT_SECRET_KEY: KEYS.secret });
    const child = spawn(command, args, { stdio: 'ignore', env });
    this.child = child;
    this.ended = new Promise((resolve) => {
      child.once('error', () => resolve());
      child.once('exit', () => resolve());
    });
    void this.ended.then(() => {
      if (this.child === child) this.child = null;
    });
    const deadline = performance.now() + START_MS;
    const url = `http://127.0.0.1:${this.port}/health`;
    while (
      !(await fetch(url)
        .then((answer) => answer.ok)
        .catch(() => false))
    ) {
      if (performance.now() > deadline) throw missingError('s3_start', 'the S3 server under fire did not start');
      await wait(50);
    }
  }

  async kill(): Promise<void> {
    this.child?.kill('SIGKILL');
    await this.ended;
  }

  async close(): Promise<void> {
    await this.front.close();
    await this.kill();
  }
}

function whereIs(): string {
  try {
    return execFileSync(WHERE, ['--where', 'versitygw'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch (error) {
    throw missingError(
      's3_server',
      'versitygw, the S3 server of --store s3, is not here',
      'infra/s3/build.sh installs it',
      error,
    );
  }
}
