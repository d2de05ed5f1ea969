// Waits that end before what they wait for does: at a deadline, where being late is an answer and no error, or with a signal.

/** What `promise` gives or throws; `late` when it has done neither after `ms`. What it does later is nobody's. */
export async function within<T, Late>(promise: Promise<T>, ms: number, late: Late): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<Late>((resolve) => {
    timer = setTimeout(resolve, ms, late);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** What `promise` gives or throws; the signal's reason as soon as it is aborted. What it does later is nobody's. */
export async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
