// A sandbox driver whose boxes open when the test says so, or not at all; the boxes themselves are the plain
// subprocess driver's.

import { BoxLost, type SandboxDriver } from '../../src/shared/sandbox.ts';
import { createSubprocessDriver } from '../../src/workers/rollout/sandbox/subprocess.ts';

export class GatedSandbox implements SandboxDriver {
  readonly kind = 'subprocess';
  /** How many ask for a box now. */
  waiting = 0;
  /** `down`: no box opens and the engine does not answer. */
  state: 'open' | 'shut' | 'down' = 'shut';
  private readonly inner = createSubprocessDriver();
  private readonly gates = new Set<() => void>();

  /** Lets those in that ask now, and those that come later. */
  release(): void {
    this.state = 'open';
    for (const gate of this.gates) gate();
    this.gates.clear();
  }

  prepare: SandboxDriver['prepare'] = (image, runtime) => this.inner.prepare(image, runtime);
  engine: SandboxDriver['engine'] = () => this.inner.engine();
  sweep: SandboxDriver['sweep'] = async () => 0;
  answers: SandboxDriver['answers'] = async () => this.state !== 'down';
  close: SandboxDriver['close'] = () => this.inner.close();

  open: SandboxDriver['open'] = async (limits, labels, signal) => {
    if (this.state === 'down') throw new BoxLost('start', 'engine', 'start:engine', 'connection refused');
    if (this.state === 'shut') {
      this.waiting++;
      try {
        await new Promise<void>((resolve, reject) => {
          this.gates.add(resolve);
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        });
      } finally {
        this.waiting--;
      }
    }
    return this.inner.open(limits, labels, signal);
  };
}
