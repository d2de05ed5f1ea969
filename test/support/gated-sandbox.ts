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
  private admitted = 0;

  /** Lets those in that ask now, and those that come later. */
  release(): void {
    this.state = 'open';
    this.admit(this.gates.size);
  }

  /** Lets so many in, of those that ask now or will, and no more. */
  admit(count: number): void {
    this.admitted += count;
    for (const gate of [...this.gates].slice(0, this.admitted)) {
      this.admitted--;
      this.gates.delete(gate);
      gate();
    }
  }

  prepare: SandboxDriver['prepare'] = (image, runtime) => this.inner.prepare(image, runtime);
  engine: SandboxDriver['engine'] = () => this.inner.engine();
  sweep: SandboxDriver['sweep'] = async () => 0;
  answers: SandboxDriver['answers'] = async () => this.state !== 'down';
  close: SandboxDriver['close'] = () => this.inner.close();

  open: SandboxDriver['open'] = async (limits, labels, signal) => {
    if (this.state === 'down') throw new BoxLost('start', 'engine', 'start:engine', 'connection refused');
    if (this.state === 'shut' && this.admitted > 0) this.admitted--;
    else if (this.state === 'shut') {
      this.waiting++;
      let enter = (): void => {};
      try {
        await new Promise<void>((resolve, reject) => {
          enter = resolve;
          this.gates.add(enter);
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        });
      } finally {
        this.gates.delete(enter);
        this.waiting--;
      }
    }
    return this.inner.open(limits, labels, signal);
  };
}
