// The one way in which tests wait for what happens elsewhere: ask until it is so, within a deadline that names it.

import { setTimeout as wait } from 'node:timers/promises';

export interface Patience {
  withinMs?: number;
  everyMs?: number;
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>;

/** What `probe` gives as soon as it is truthy. Throws, naming `what`, when the time is over. */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  { withinMs = 60_000, everyMs = 20 }: Patience = {},
): Promise<Truthy<T>> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await probe();
    if (found) return found as Truthy<T>;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await wait(everyMs);
  }
}
