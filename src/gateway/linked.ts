// A signal of one's own that follows others and the clock, and is let go of by hand: thousands of requests a second
// would otherwise leave their timers and weak references to the garbage collector.

import { setMaxListeners } from 'node:events';

export interface Linked {
  readonly signal: AbortSignal;
  /** The time was over. */
  readonly late: boolean;
  abort(): void;
  /** Follows nothing any more; to be called when what it was for is over. */
  release(): void;
}

export function linked(parents: readonly AbortSignal[], withinMs: number | null = null): Linked {
  const controller = new AbortController();
  // Every box and every query of a request listens to the same one.
  setMaxListeners(0, controller.signal);
  const follow = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  let late = false;
  const timer =
    withinMs === null
      ? null
      : setTimeout(
          () => {
            late = true;
            controller.abort(new Error('the time is over'));
          },
          Math.max(0, withinMs),
        );
  for (const parent of parents) {
    if (parent.aborted) controller.abort(parent.reason);
    else parent.addEventListener('abort', follow, { once: true });
  }
  return {
    signal: controller.signal,
    get late() {
      return late;
    },
    abort: () => controller.abort(),
    release: () => {
      if (timer) clearTimeout(timer);
      for (const parent of parents) parent.removeEventListener('abort', follow);
    },
  };
}
