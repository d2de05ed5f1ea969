// An episode's deadline on the wall, over everything: the wait for its box, the start, every step, reading, storing and
// the box's end. It is the sum of the bounds that its parts have anyway, so that it is met only when something hangs.

import type { RunSettings } from '../../shared/ledger/run-settings.ts';
import { within } from '../../shared/within.ts';
import { Ending } from '../ending.ts';

/** For a box, and for what the plan's document and the trajectory need of the store. */
const AROUND_MS = 180_000;
/** On top of a step's own time: kill, reset, files in and out. */
const STEP_GRACE_MS = 30_000;
/** Well within the life of a box, which may be a quarter of an hour old when an episode gets it. */
const LONGEST_MS = 100 * 60_000;
/** For what is told to end, until it is left alone. */
export const END_MS = 20_000;

export class WallDeadline extends Error {
  constructor(ms: number) {
    super(`the episode was not over within ${Math.round(ms / 1000)} s`);
    this.name = 'WallDeadline';
  }
}

export function episodeMs({ maxSteps, sandbox }: RunSettings): number {
  return Math.min(LONGEST_MS, AROUND_MS + maxSteps * (sandbox.timeoutS * 1000 + STEP_GRACE_MS));
}

/** Runs `work` with a signal that ends it at the deadline, or when `signal` does; what does not heed it is left behind. */
export async function withinWall<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  endMs = END_MS,
): Promise<T> {
  const ending = new Ending();
  const told = (): void => ending.end(signal.reason);
  if (signal.aborted) told();
  else signal.addEventListener('abort', told);
  try {
    return await untilWall(ms, ending, () => work(ending.signal), endMs);
  } finally {
    signal.removeEventListener('abort', told);
  }
}

/** The same where the deadline may tell `ending` itself. */
export async function untilWall<T>(ms: number, ending: Ending, work: () => Promise<T>, endMs = END_MS): Promise<T> {
  let deaf: NodeJS.Timeout | undefined;
  let leave: (reason: unknown) => void = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = reject;
  });
  const told = (): void => {
    deaf = setTimeout(() => leave(ending.signal.reason), endMs);
  };
  const timer = setTimeout(() => ending.end(new WallDeadline(ms)), ms);
  ending.heard = told;
  if (ending.signal.aborted) told();
  try {
    return await Promise.race([work(), left]);
  } finally {
    ending.heard = null;
    clearTimeout(timer);
    clearTimeout(deaf);
  }
}

/** Waits for an end, but not for ever. */
export async function ended(end: Promise<void>, ms = END_MS): Promise<void> {
  await within(end, ms, null);
}
