// A Docker engine of the test's own, apart from the machine's in processes, mounts and network: its containers end with it, and
// what it does to bridges and filter rules is done where nobody else is.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const APART = ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child'];

export class TestEngine {
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'farm-test-engine-'));
  /** Nobody listens there before `start`. */
  readonly host = `unix://${this.folder}/docker.sock`;
  private process: ChildProcess | null = null;

  start(args: readonly string[]): void {
    const at = (name: string): string => path.join(this.folder, name);
    writeFileSync(at('daemon.json'), '{}');
    const own = ['--config-file', at('daemon.json'), '--data-root', at('data'), '--exec-root', at('exec')];
    const daemon = ['dockerd', ...own, '--pidfile', at('pid'), '--host', this.host, ...args];
    this.process = spawn('unshare', [...APART, ...daemon], { stdio: 'ignore' });
  }

  docker(...args: string[]): string {
    return execFileSync('docker', ['--host', this.host, ...args], { encoding: 'utf8' }).trim();
  }

  /** With all that it runs. */
  async close(): Promise<void> {
    const running = this.process;
    if (running !== null && running.exitCode === null) {
      const ended = new Promise((resolve) => running.once('exit', resolve));
      running.kill('SIGKILL');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }
}
