// Ctrl-C, SIGTERM and a terminal that closes: the first drains, the second stops at once. Before there is anything to drain, the first ends the command.

import { EXIT } from '../shared/errors.ts';

const STOP_WITHIN_MS = 4_500;

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP';

export class Interrupts {
  private count = 0;
  private signal: Signal = 'SIGINT';
  private force: () => void = () => {};
  private first: (() => void) | null = null;
  private readonly controller = new AbortController();
  private readonly handlers: readonly (readonly [Signal, () => void])[];

  constructor() {
    this.handlers = (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map(
      (signal) => [signal, () => this.came(signal)] as const,
    );
    for (const [signal, handler] of this.handlers) process.on(signal, handler);
  }

  onFirst(action: () => void): void {
    this.first = action;
    if (this.count > 0) action();
  }

  /** What must not outlive us: called at the latest moment before a forced end. */
  onForce(action: () => void): void {
    this.force = action;
  }

  /** Aborted by the second signal. */
  get second(): AbortSignal {
    return this.controller.signal;
  }

  get exitCode(): number {
    return this.signal === 'SIGINT' ? EXIT.interrupted : this.signal === 'SIGTERM' ? 143 : 129;
  }

  close(): void {
    for (const [signal, handler] of this.handlers) process.off(signal, handler);
  }

  private came(signal: Signal): void {
    this.count++;
    this.signal = signal;
    if (this.count === 1) {
      if (this.first) this.first();
      return;
    }
    this.controller.abort();
    // Whatever hangs: twice means gone within five seconds. Containers end themselves without us.
    setTimeout(() => {
      this.force();
      process.exit(this.exitCode);
    }, STOP_WITHIN_MS).unref();
  }
}
