// The farm's processes under fire: several of each role, each a child of ours started by the command line as a user would.
// One that ends is started again after a rest, as a service manager does; one that was felled stays down until it is raised.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childrenOf } from '../../shared/process-tree.ts';
import { within } from '../../shared/within.ts';
import { boundToUs } from './bound.ts';
import type { LogBook } from './log-book.ts';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const REST_MS = 700;

export type RoleKind = 'rollout' | 'verify' | 'collect' | 'gateway';

export interface Part {
  name: string;
  role: RoleKind;
  /** Of the farm's command line. */
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  /** What runs it, where it is not Node alone: a namespace. */
  prefix: readonly string[];
}

interface Actor {
  part: Part;
  child: ChildProcess | null;
  ended: Promise<void>;
  felled: boolean;
  timer: NodeJS.Timeout | null;
}

export interface OwnDeath {
  name: string;
  code: number | null;
  signal: NodeJS.Signals | null;
}

export class Troupe {
  /** Those who ended without being told to. */
  readonly deaths: OwnDeath[] = [];
  starts = 0;
  private readonly actors = new Map<string, Actor>();
  private readonly logs: LogBook;
  private leaving = false;

  constructor(parts: readonly Part[], logs: LogBook) {
    this.logs = logs;
    for (const part of parts)
      this.actors.set(part.name, { part, child: null, ended: Promise.resolve(), felled: true, timer: null });
  }

  get names(): string[] {
    return [...this.actors.keys()];
  }

  of(role: RoleKind): string[] {
    return [...this.actors.values()].filter((a) => a.part.role === role).map((a) => a.part.name);
  }

  pidOf(name: string): number | null {
    return this.actor(name).child?.pid ?? null;
  }

  nameOf(pid: number): string | null {
    return this.names.find((name) => this.pidOf(name) === pid) ?? null;
  }

  /** Starts it, unless it runs; from now on it is kept running. */
  raise(name: string): void {
    const actor = this.actor(name);
    actor.felled = false;
    if (actor.child === null && actor.timer === null) this.start(actor);
  }

  /** SIGKILL, and it stays down. */
  async fell(name: string): Promise<void> {
    const actor = this.actor(name);
    actor.felled = true;
    if (actor.timer !== null) clearTimeout(actor.timer);
    actor.timer = null;
    signalAll(actor.child, 'SIGKILL');
    await actor.ended;
  }

  /** To all of its processes. */
  signal(name: string, signal: NodeJS.Signals): void {
    signalAll(this.actor(name).child, signal);
  }

  /** Processes that it has started: members are at work in them where it supervises its role. */
  childrenOf(name: string): number[] {
    const pid = this.pidOf(name);
    return pid === null ? [] : childrenOf(pid);
  }

  /** Asks all to drain; those who are still there after `graceMs` are named. */
  async leave(graceMs: number): Promise<string[]> {
    this.leaving = true;
    for (const actor of this.actors.values()) {
      if (actor.timer !== null) clearTimeout(actor.timer);
      signalAll(actor.child, 'SIGCONT');
      actor.child?.kill('SIGTERM');
    }
    const ends = [...this.actors.values()].map((actor) => actor.ended);
    await within(Promise.all(ends), graceMs, null);
    return this.names.filter((name) => this.actor(name).child !== null);
  }

  async kill(): Promise<void> {
    this.leaving = true;
    for (const actor of this.actors.values()) {
      if (actor.timer !== null) clearTimeout(actor.timer);
      signalAll(actor.child, 'SIGKILL');
    }
    await Promise.all([...this.actors.values()].map((a) => a.ended));
  }

  private actor(name: string): Actor {
    const actor = this.actors.get(name);
    if (actor === undefined) throw new Error(`nobody is called ${name}`);
    return actor;
  }

  private start(actor: Actor): void {
    const { part } = actor;
    this.starts++;
    const [command, ...args] = boundToUs([...part.prefix, process.execPath, MAIN, ...part.args]);
    // A process group of its own: what it starts falls with it.
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: part.environment, detached: true });
    actor.child = child;
    createInterface({ input: child.stderr }).on('line', (line) => this.logs.add(part.name, line));
    actor.ended = new Promise((resolve) => {
      const over = (code: number | null, signal: NodeJS.Signals | null): void => {
        actor.child = null;
        resolve();
        if (actor.felled || this.leaving) return;
        this.deaths.push({ name: part.name, code, signal });
        this.logs.add(part.name, `(ended: ${signal ?? `exit ${code}`})`);
        actor.timer = setTimeout(() => {
          actor.timer = null;
          if (!actor.felled && !this.leaving) this.start(actor);
        }, REST_MS);
      };
      child.once('error', () => over(null, null));
      child.once('exit', over);
    });
  }
}

function signalAll(child: ChildProcess | null, signal: NodeJS.Signals): void {
  if (child?.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // gone already
  }
}
