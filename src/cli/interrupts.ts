// Ctrl-C, SIGTERM and a terminal that closes: the first drains, the second stops at once. Before there is anything to drain,
// while a command still waits for what it needs, the first ends it.
//
//   listening ──first──> drains ──second──> gone within 5 s
//    └─first, and nobody takes it within 1 s──> gone

import { EXIT, type ExitCode } from '../shared/errors.ts';

const STOP_WITHIN_MS = 4_500;
/** Whoever is about to be there has so long to take the first signal: what it has begun ends better by its own hand. */
const UNTAKEN_MS = 1_000;

const EXITS = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated, SIGHUP: EXIT.hungUp } as const;

type Signal = keyof typeof EXITS;

export class Interrupts {
  private count = 0;
  private signal: Signal = 'SIGINT';
  private force: () => void = () => {};
  private first: (() => void) | null = null;
  private untaken: NodeJS.Timeout | undefined;
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
    clearTimeout(this.untaken);
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

  get exitCode(): ExitCode {
    return EXITS[this.signal];
  }

  close(): void {
    clearTimeout(this.untaken);
    for (const [signal, handler] of this.handlers) process.off(signal, handler);
  }

  private came(signal: Signal): void {
    this.count++;
    this.signal = signal;
    if (this.count === 1) {
      if (this.first) this.first();
      else this.untaken = setTimeout(() => this.leave(), UNTAKEN_MS);
      return;
    }
    this.controller.abort();
    // Whatever hangs: twice means gone within five seconds. Containers end themselves without us.
    setTimeout(() => this.leave(), STOP_WITHIN_MS).unref();
  }

  private leave(): never {
    this.force();
    process.exit(this.exitCode);
  }
}
