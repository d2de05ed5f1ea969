// How something at work is told to end: once, with a reason, by a signal that whatever it waits for heeds, and by a word to
// whoever bounds the time that it takes to heed it. A light episode is over in the time that linking signals takes.

export class Ending {
  readonly signal: AbortSignal;
  /** Called when it is told to end. */
  heard: (() => void) | null = null;
  private readonly control = new AbortController();

  constructor() {
    this.signal = this.control.signal;
  }

  end(reason: unknown): void {
    if (this.signal.aborted) return;
    this.control.abort(reason);
    this.heard?.();
  }
}
