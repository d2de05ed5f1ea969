// A container seen from outside: by the host's root through /proc and the cgroup, and by the engine's list of its
// processes. Nothing is run in it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SCRIPT = fileURLToPath(new URL('../workers/rollout/sandbox/outside.py', import.meta.url));

export interface Outside {
  /** What should not be there, a line each. */
  left: string[];
  /** What has to stay as it is: owners, modes, mounts, the runner's priorities, limits and descriptors. */
  same: Record<string, unknown>;
  /** Of the whole container, bytes. */
  memory: number;
  /** Of its runner. */
  rss: number;
}

interface Container {
  Id: string;
}

/** Asks the engine, as anybody with its socket could. */
export async function askEngine<T>(path: string): Promise<T> {
  return await new Promise<T>((resolve, reject) => {
    const asked = request({ socketPath: '/var/run/docker.sock', path }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.on('end', () => resolve(JSON.parse(text) as T));
    });
    asked.on('error', reject).end();
  });
}

export async function containersOf(farm: string): Promise<string[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: [`rollout-farm.farm=${farm}`] }));
  const found = await askEngine<Container[]>(`/containers/json?all=1&filters=${filters}`);
  return found.map((one) => one.Id);
}

/** Of the processes of a container, those whose command holds `word`, as the host numbers them. */
export async function pidsIn(container: string, word: string): Promise<number[]> {
  const { Processes } = await askEngine<{ Processes: string[][] }>(`/containers/${container}/top`);
  return Processes.filter((one) => one.slice(7).join(' ').includes(word)).map((one) => Number(one[1]));
}

export class OutsideView {
  private readonly surveyor: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor() {
    this.surveyor = spawn('python3', [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface({ input: this.surveyor.stdout! })[Symbol.asyncIterator]();
  }

  async look(container: string): Promise<Outside> {
    const { State } = await askEngine<{ State: { Pid: number } }>(`/containers/${container}/json`);
    this.surveyor.stdin!.write(`${State.Pid}\n`);
    const { value } = (await this.lines.next()) as { value: string };
    const seen = JSON.parse(value) as Outside & { error?: string };
    if (seen.error !== undefined) throw new Error(seen.error);
    const { Processes } = await askEngine<{ Processes: string[][] }>(`/containers/${container}/top`);
    // user, pid, parent, share of a processor, start, terminal, time, command
    if (Processes.length !== 1)
      seen.left.push(
        ...Processes.map((one) => `by the engine: ${one[0]} ${one[1]} ${one[2]} ${one.slice(7).join(' ')}`),
      );
    return seen;
  }

  async close(): Promise<void> {
    const gone = once(this.surveyor, 'exit');
    this.surveyor.stdin!.end();
    await gone;
  }
}
