// Repeated requests: one that is the same as one in flight joins it, one that was answered before gets the kept answer.
// Kept within bounds (time, number, bytes). Work goes on for a while after its last caller has gone, because callers
// that repeat come back in a second or two; then it is cancelled.

export interface Joined<T> {
  value: T;
  /** False for whoever began it. */
  repeated: boolean;
}

export interface JoinOptions {
  /** Zero: answers are not kept, only joined. */
  keepMs: number;
  keepCount: number;
  keepBytes: number;
  /** How long work without a caller goes on. */
  lingerMs: number;
}

interface Entry<T> {
  /** What the request said: the same key with something else in it is a mistake of the caller's. */
  content: string;
  promise: Promise<T>;
  controller: AbortController;
  callers: number;
  linger: NodeJS.Timeout | null;
  done: boolean;
  bytes: number;
  until: number;
}

export class Joins<T> {
  private readonly entries = new Map<string, Entry<T>>();
  private readonly options: JoinOptions;
  private readonly bytesOf: (value: T) => number;
  private bytes = 0;

  constructor(options: JoinOptions, bytesOf: (value: T) => number) {
    this.options = options;
    this.bytesOf = bytesOf;
  }

  get size(): number {
    return this.entries.size;
  }

  /** Null where `key` was used for another `content`. Rejects with the caller's reason, or as the work does. */
  async join(
    key: string,
    content: string,
    caller: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<Joined<T> | null> {
    this.forget();
    const found = this.entries.get(key);
    // What was just cancelled is no one to join.
    const known = found?.controller.signal.aborted && !found.done ? undefined : found;
    if (known && known.content !== content) return null;
    const entry = known ?? this.begin(key, content, work);
    entry.callers++;
    if (entry.linger) clearTimeout(entry.linger);
    entry.linger = null;
    try {
      return { value: await unlessGone(entry.promise, caller), repeated: known !== undefined };
    } finally {
      if (--entry.callers === 0 && !entry.done) this.leave(entry);
    }
  }

  private begin(key: string, content: string, work: (signal: AbortSignal) => Promise<T>): Entry<T> {
    const controller = new AbortController();
    const entry: Entry<T> = {
      content,
      promise: work(controller.signal),
      controller,
      callers: 0,
      linger: null,
      done: false,
      bytes: 0,
      until: 0,
    };
    this.entries.set(key, entry);
    entry.promise.then(
      (value) => this.keep(key, entry, value),
      () => this.drop(key, entry),
    );
    return entry;
  }

  private keep(key: string, entry: Entry<T>, value: T): void {
    entry.done = true;
    const bytes = this.bytesOf(value);
    const { keepMs, keepCount, keepBytes } = this.options;
    if (keepMs === 0 || bytes > keepBytes / 8) {
      this.drop(key, entry);
      return;
    }
    entry.bytes = bytes;
    entry.until = performance.now() + keepMs;
    this.bytes += bytes;
    // To the end: what was answered longest ago is the first to go.
    this.entries.delete(key);
    this.entries.set(key, entry);
    for (const [oldKey, old] of this.entries) {
      if (this.bytes <= keepBytes && this.entries.size <= keepCount) break;
      if (old.done && old !== entry) this.drop(oldKey, old);
    }
  }

  private drop(key: string, entry: Entry<T>): void {
    entry.done = true;
    if (entry.linger) clearTimeout(entry.linger);
    if (this.entries.get(key) !== entry) return;
    this.entries.delete(key);
    this.bytes -= entry.bytes;
  }

  private leave(entry: Entry<T>): void {
    const cancel = (): void => entry.controller.abort(new Error('nobody waits for the answer any more'));
    if (this.options.lingerMs === 0) cancel();
    else entry.linger = setTimeout(cancel, this.options.lingerMs);
  }

  private forget(): void {
    const now = performance.now();
    for (const [key, entry] of this.entries) {
      if (!entry.done) continue;
      if (entry.until > now) break;
      this.drop(key, entry);
    }
  }
}

function unlessGone<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const gone = (): void => reject(signal.reason);
    signal.addEventListener('abort', gone, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', gone));
  });
}
