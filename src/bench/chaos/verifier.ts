// The verifier of a farm under fire: the house's stand-in as a child of ours, always on the same port; started anew to
// behave badly, and killed to be down.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { missingError } from '../../shared/errors.ts';
import { boundToUs } from './bound.ts';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const START_MS = 20_000;
/** So long takes a call when all is well. */
const LATENCY_MS = 40;

export type Misbehaviour = 'rate_limit' | 'garbage';

export class Verifier {
  private readonly port: number;
  private readonly environment: NodeJS.ProcessEnv;
  private child: ChildProcess | null = null;

  private constructor(port: number, environment: NodeJS.ProcessEnv) {
    this.port = port;
    this.environment = environment;
  }

  static async start(environment: NodeJS.ProcessEnv): Promise<Verifier> {
    const verifier = new Verifier(await freePort(), environment);
    await verifier.behave(null);
    return verifier;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async down(): Promise<void> {
    const child = this.child;
    this.child = null;
    if (child === null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Null: well. */
  async behave(badly: Misbehaviour | null): Promise<void> {
    await this.down();
    const misbehave = { latency_ms: LATENCY_MS, fail: badly === null ? [] : [{ kind: badly }] };
    const [command, ...args] = boundToUs([
      process.execPath,
      MAIN,
      'simulate',
      '--port',
      String(this.port),
      '--misbehave',
      JSON.stringify(misbehave),
    ]);
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'], env: this.environment });
    this.child = child;
    const ready = once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(START_MS) });
    const ended = once(child, 'exit').then(() => {
      throw missingError('simulator_start', `the verifier's stand-in did not start on port ${this.port}`);
    });
    ended.catch(() => {});
    await Promise.race([ready, ended]);
  }
}

export async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
