// A sandbox driver whose starts fail, wait or take their time as the test says; boxes are the plain subprocess driver's.
// Counts what was opened, what is open, and how many started at once.

import { type Box, BoxLost, type SandboxDriver } from '../../src/shared/sandbox.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';

export class ScriptedSandbox implements SandboxDriver {
  readonly kind = 'subprocess';
  /** What the next starts do, one after the other; then they succeed. */
  readonly script: ('fail' | 'hang')[] = [];
  /** How long a start takes. */
  startMs = 0;
  /** What `engine` says it has. */
  memoryMb = 4_096;
  opened = 0;
  starting = 0;
  mostStarting = 0;
  readonly boxes = new Set<Box>();
  private readonly inner = createSubprocessDriver();
  private readonly hanging = new Set<() => void>();

  /** Lets the starts that hang go on. */
  release(): void {
    for (const go of this.hanging) go();
    this.hanging.clear();
  }

  prepare: SandboxDriver['prepare'] = (image, runtime) => this.inner.prepare(image, runtime);
  answers: SandboxDriver['answers'] = async () => true;
  sweep: SandboxDriver['sweep'] = async () => 0;
  engine: SandboxDriver['engine'] = async () => ({
    id: 'scripted',
    memoryMb: this.memoryMb,
    cpus: 4,
    architecture: 'amd64',
    runtimes: ['runc'],
  });

  open: SandboxDriver['open'] = async (limits, labels, signal) => {
    this.starting += 1;
    this.mostStarting = Math.max(this.mostStarting, this.starting);
    try {
      const what = this.script.shift();
      if (what === 'fail') throw new BoxLost('start', 'engine', 'start:scripted', 'as the test says');
      if (what === 'hang')
        await new Promise<void>((resolve) => {
          this.hanging.add(resolve);
          signal.addEventListener('abort', () => resolve(), { once: true });
        });
      if (this.startMs > 0) await new Promise((resolve) => setTimeout(resolve, this.startMs));
      signal.throwIfAborted();
      const box = await this.inner.open(limits, labels, signal);
      this.opened += 1;
      this.boxes.add(box);
      const close = box.close.bind(box);
      box.close = () => close().finally(() => this.boxes.delete(box));
      return box;
    } finally {
      this.starting -= 1;
    }
  };

  async close(): Promise<void> {
    this.release();
    await this.inner.close();
  }
}
