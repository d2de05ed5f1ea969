// Runs roles as child processes of one command: one that crashes is started again, what it held is given back at once,
// and all of them end with the command, drained or at once.
//
//   up ──crash of a child──> buried, started again after a rest
//    ├─ drain ──all over, or 30 s──> stop
//    └─ stop ──4 s──> killed

import { type ChildProcess, fork } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childEnvironment } from '../shared/config.ts';
import type { Slots } from '../shared/lane.ts';
import { knownRuns } from '../shared/ledger/known-runs.ts';
import { RunLedger } from '../shared/ledger/run-ledger.ts';
import type { Log } from '../shared/log.ts';
import type { RoleName } from '../shared/presence.ts';
import type { Redis } from '../shared/redis/client.ts';

const ROLE_MAIN = fileURLToPath(new URL('role-main.js', import.meta.url));
export const DRAIN_MS = 30_000;
const STOP_MS = 4_000;
const RESTART_MS = 500;

/** Deaths of one signature, each with one member alone in its worker, that set the member aside. */
export const POISON_DEATHS = 3;

export interface RoleOrder {
  role: RoleName;
  realm: string;
  slots: Slots;
  /** Of a private realm: the one run. */
  run: string | null;
}

export interface SupervisorOptions {
  orders: readonly RoleOrder[];
  environment: Record<string, string>;
  log: Log;
  /** Takes what the children log. */
  lines: (text: string) => void;
  /** A child's role has started, for the first time or again. */
  onReady?: (worker: string) => void;
  /** A child died by itself: its worker's name, and a signature of its death ('' if it was killed from outside). */
  onDeath: (worker: string, signature: string) => Promise<void>;
}

interface Child {
  process: ChildProcess;
  worker: string;
  ended: Promise<void>;
}

export class Supervisor {
  private readonly children = new Map<RoleOrder, Child>();
  private readonly options: SupervisorOptions;
  private ending = false;
  private started = 0;

  constructor(options: SupervisorOptions) {
    this.options = options;
    for (const order of options.orders) this.start(order);
  }

  /** Names of the workers that run now. */
  get workers(): string[] {
    return [...this.children.values()].map((c) => c.worker);
  }

  private start(order: RoleOrder): void {
    const worker = `${order.role}-${process.pid}-${++this.started}-${Date.now().toString(36)}`;
    const child = fork(ROLE_MAIN, [JSON.stringify({ ...order, worker })], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      env: childEnvironment(this.options.environment),
      serialization: 'json',
    });
    child.on('message', (message) => message === 'ready' && this.options.onReady?.(worker));
    if (child.stderr) createInterface({ input: child.stderr }).on('line', (line) => this.options.lines(`${line}\n`));
    const ended = new Promise<void>((resolve) => {
      child.once('error', () => resolve());
      child.once('exit', (code, signal) => {
        this.children.delete(order);
        resolve();
        if (!this.ending) void this.recover(order, worker, code, signal);
      });
    });
    this.children.set(order, { process: child, worker, ended });
  }

  private async recover(
    order: RoleOrder,
    worker: string,
    code: number | null,
    signal: NodeJS.Signals | null,
  ): Promise<void> {
    this.options.log.warn({ role: order.role, worker, code, signal }, 'a worker died; starting another');
    // SIGKILL and SIGTERM come from outside (an operator, the kernel's OOM killer): no member is to blame for them.
    const signature =
      signal === 'SIGKILL' || signal === 'SIGTERM' ? '' : `${order.role} died: ${signal ?? `exit ${code}`}`;
    await this.options.onDeath(worker, signature).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, RESTART_MS));
    if (!this.ending) this.start(order);
  }

  /** Lets what is at work end; after `graceMs` it is stopped (null: its own deadlines end it). `now` cuts the wait short. */
  async drain(now: AbortSignal, graceMs: number | null = DRAIN_MS): Promise<void> {
    this.ending = true;
    this.tell('drain');
    const deadline = new Promise<void>((resolve) => {
      if (graceMs !== null) setTimeout(resolve, graceMs).unref();
      if (now.aborted) resolve();
      now.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([this.allEnded(), deadline]);
    await this.stop();
  }

  /** Ends everything within seconds; nothing of ours is left. */
  async stop(): Promise<void> {
    this.ending = true;
    this.tell('stop');
    const timer = setTimeout(() => this.kill(), STOP_MS);
    await this.allEnded();
    clearTimeout(timer);
  }

  /** At once, without a word. */
  kill(): void {
    for (const child of this.children.values()) child.process.kill('SIGKILL');
  }

  private tell(what: 'drain' | 'stop'): void {
    for (const child of this.children.values()) if (child.process.connected) child.process.send(what, () => {});
  }

  private async allEnded(): Promise<void> {
    await Promise.all([...this.children.values()].map((c) => c.ended));
  }
}

/** Gives back what a dead worker held in the runs of a realm. */
export async function buryIn(redis: Redis, realm: string, worker: string, signature: string): Promise<void> {
  for (const run of await knownRuns(redis, realm))
    await new RunLedger(redis, run).bury(worker, signature, POISON_DEATHS);
}
