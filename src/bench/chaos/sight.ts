// What a person sees while a fault holds: `farm status RUN` and `farm top` as they print, and the log lines of the farm's
// processes. A fault says what must stand there; whatever does not is named.

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { boundToUs } from './bound.ts';
import { farm } from './command.ts';
import type { LogBook } from './log-book.ts';

const MAIN = fileURLToPath(new URL('../../cli/main.js', import.meta.url));
const LOOK_MS = 1_000;
/** A command on a busy machine takes its time before it asks anything. */
const STATUS_MS = 30_000;
const LEAST_LOOKS = 2;
const START_MS = 30_000;

export interface Visible {
  /** In what `farm status RUN` prints (or in its complaint), in what `farm top` shows, in a log line. */
  status?: RegExp;
  top?: RegExp;
  log?: RegExp;
  withinMs: number;
}

export class Sight {
  private readonly environment: NodeJS.ProcessEnv;
  private readonly run: string;
  private readonly logs: LogBook;
  private top: ChildProcess;
  private closed = false;

  constructor(environment: NodeJS.ProcessEnv, run: string, logs: LogBook) {
    this.environment = environment;
    this.run = run;
    this.logs = logs;
    this.top = this.startTop();
  }

  /** What is not to be seen by then, of a fault that began at `began`, each with what was there instead. `isOver`: nothing waits for anything any more. */
  async missing(visible: Visible, began: number, isOver: () => Promise<boolean>): Promise<string[]> {
    const since = performance.now();
    const open = new Set((['status', 'top', 'log'] as const).filter((where) => visible[where] !== undefined));
    let shown = '';
    for (let looks = 1; ; looks++) {
      if (open.has('status')) {
        const { out, err } = await farm(this.environment, STATUS_MS, 'status', this.run);
        shown = `${out}${err}`.trim();
        if (visible.status?.test(shown)) open.delete('status');
      }
      for (const where of ['top', 'log'] as const)
        if (open.has(where) && this.stands(where, visible[where] as RegExp, began)) open.delete(where);
      if (open.size === 0 || (looks >= LEAST_LOOKS && performance.now() - since > visible.withinMs)) break;
      if (await isOver()) return [];
      await wait(LOOK_MS);
    }
    return [...open].map(
      (where) =>
        `${where} never said ${visible[where]}${where === 'status' ? `; last: ${JSON.stringify(shown.slice(0, 600))}` : ''}`,
    );
  }

  /** `top` has shown something: before, a fault would only keep it from starting. */
  async ready(): Promise<void> {
    const deadline = performance.now() + START_MS;
    while (this.logs.find(/chaos/, 0, (name) => name === 'top') === null && performance.now() < deadline)
      await wait(LOOK_MS / 10);
  }

  close(): void {
    this.closed = true;
    this.top.kill('SIGKILL');
  }

  private stands(where: 'top' | 'log', says: RegExp, since: number): boolean {
    return this.logs.find(says, since, (name) => (name === 'top') === (where === 'top')) !== null;
  }

  private startTop(): ChildProcess {
    const [command, ...args] = boundToUs([process.execPath, MAIN, 'top']);
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: this.environment });
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on('line', (line) => this.logs.add('top', line));
    child.once('exit', (code) => {
      this.logs.add('top', `(ended: ${code})`);
      setTimeout(() => {
        if (!this.closed) this.top = this.startTop();
      }, LOOK_MS);
    });
    return child;
  }
}
