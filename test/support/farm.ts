// A farm of the test's own: a data folder, and whole commands on it as child processes. What they leave behind can be
// asked for, and is ended when the test is over.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ensureBuilt, MAIN } from './built.ts';
import { contentOf } from './files.ts';
import { killAll, processesOf, type SeenProcess } from './processes.ts';
import { type Patience, until } from './until.ts';

export interface Ended {
  /** Null if a signal ended it. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Command {
  process: ChildProcess;
  readonly stdout: string;
  readonly stderr: string;
  ended: Promise<Ended>;
  /** To the command's whole process group, as a terminal does. */
  signalGroup(signal: NodeJS.Signals): void;
}

export class TestFarm {
  /** Resolved: how the keeper knows it. */
  readonly data: string;
  readonly env: Record<string, string>;
  private readonly commands: Command[] = [];

  constructor(env: Record<string, string> = {}) {
    ensureBuilt();
    this.data = realpathSync(mkdtempSync(path.join(tmpdir(), 'farm-test-data-')));
    const { PATH = '', HOME = '', DOCKER_HOST } = process.env;
    this.env = { PATH, HOME, ...(DOCKER_HOST === undefined ? {} : { DOCKER_HOST }), FARM_DATA: this.data, ...env };
  }

  /** Writes a file beside the data and gives its path; what is not text is written as JSON. */
  file(name: string, content: unknown): string {
    const place = path.join(this.data, name);
    writeFileSync(place, typeof content === 'string' ? content : JSON.stringify(content));
    return place;
  }

  start(...args: string[]): Command {
    return this.node(MAIN, ...args);
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(...args).ended;
  }

  /** Node with the farm's environment, in a process group of its own. */
  node(...args: string[]): Command {
    const child = spawn(process.execPath, args, { env: this.env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const command: Command = {
      process: child,
      get stdout() {
        return stdout;
      },
      get stderr() {
        return stderr;
      },
      ended: new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr }))),
      signalGroup: (signal) => process.kill(-(child.pid as number), signal),
    };
    this.commands.push(command);
    return command;
  }

  get processes(): SeenProcess[] {
    return processesOf(this.data);
  }

  /** Waits until no process of this farm is left: also no keeper and no redis-server. */
  async gone(patience: Patience = {}): Promise<void> {
    try {
      await until('no process of the farm is left', () => this.processes.length === 0, patience);
    } catch (error) {
      throw new Error(`${error}: ${JSON.stringify(this.processes)}`);
    }
  }

  /** Ids of the containers that carry this farm's label, whatever state they are in. */
  get containers(): string[] {
    return this.listed('-aq');
  }

  /** Those that run. */
  get running(): string[] {
    return this.listed('-q');
  }

  private listed(which: string): string[] {
    const id = this.farmId;
    if (id === null) return [];
    const args = ['ps', which, '--filter', `label=rollout-farm.farm=${id}`];
    return execFileSync('docker', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
  }

  /** Waits until nothing is left: no process, and no container. */
  async nothingLeft(patience: Patience = {}): Promise<void> {
    await this.gone(patience);
    await until('no container of the farm is left', () => this.containers.length === 0, patience);
  }

  /** From what Redis has written: also when nothing runs any more. */
  private get farmId(): string | null {
    const folder = path.join(this.data, 'redis', 'appendonlydir');
    if (!existsSync(folder)) return null;
    const log = readdirSync(folder)
      .map((name) => contentOf(path.join(folder, name)).toString('latin1'))
      .join('');
    return /farm:id\r\n\$16\r\n([0-9a-f]{16})/.exec(log)?.[1] ?? null;
  }

  async close(): Promise<void> {
    // The keeper starts its server again: until nothing is found any more.
    await until('the farm’s processes are killed', () => {
      killAll(this.processes);
      return this.processes.length === 0;
    });
    await Promise.all(this.commands.map((c) => c.ended));
    rmSync(this.data, { recursive: true, force: true });
  }
}
