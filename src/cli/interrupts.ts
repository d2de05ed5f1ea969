// Ctrl-C and SIGTERM: the first drains, the second stops at once. Before there is anything to drain, the first ends the command.

import { EXIT } from '../shared/errors.ts';

const STOP_WITHIN_MS = 5_000;

export class Interrupts {
  private count = 0;
  private signal: 'SIGINT' | 'SIGTERM' = 'SIGINT';
  private first: (() => void) | null = null;
  private readonly controller = new AbortController();
  private readonly handlers: readonly (readonly ['SIGINT' | 'SIGTERM', () => void])[];

  constructor() {
    this.handlers = (['SIGINT', 'SIGTERM'] as const).map((signal) => [signal, () => this.came(signal)] as const);
    for (const [signal, handler] of this.handlers) process.on(signal, handler);
  }

  onFirst(action: () => void): void {
    this.first = action;
    if (this.count > 0) action();
  }

  /** Aborted by the second signal. */
  get second(): AbortSignal {
    return this.controller.signal;
  }

  get exitCode(): number {
    return this.signal === 'SIGTERM' ? 143 : EXIT.interrupted;
  }

  close(): void {
    for (const [signal, handler] of this.handlers) process.off(signal, handler);
  }

  private came(signal: 'SIGINT' | 'SIGTERM'): void {
    this.count++;
    this.signal = signal;
    if (this.count === 1) {
      if (this.first) this.first();
      return;
    }
    this.controller.abort();
    // Whatever hangs: twice means gone within five seconds. Containers end themselves without us.
    setTimeout(() => process.exit(this.exitCode), STOP_WITHIN_MS).unref();
  }
}
