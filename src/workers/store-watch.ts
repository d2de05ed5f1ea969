// A store that takes its time is what members and shards wait for. Whoever waits says so: in its log, and in the run for as
// long as it lasts (`status` and `top` read it there).

import { runKey } from '../shared/ledger/script.ts';
import { storeWaitKey } from '../shared/ledger/store-wait.ts';
import type { Log } from '../shared/log.ts';
import type { Redis } from '../shared/redis/client.ts';
import type { Store } from '../shared/store/store.ts';

const LOOK_MS = 1_000;
/** What takes longer is told. */
const SLOW_MS = 3_000;
/** A process that is gone waits for nothing. */
const GOOD_FOR_MS = 3_000;
const AGAIN_MS = 10_000;

export function watchedStore(store: Store, run: string, redis: Redis, log: Log): Store {
  const watch = new StoreWatch(store.address, run, redis, log);
  return {
    address: store.address,
    put: (key, bytes) => watch.during(`to write ${key}`, store.put(key, bytes)),
    putNew: (key, bytes) => watch.during(`to write ${key}`, store.putNew(key, bytes)),
    get: (key, range) => watch.during(`to read ${key}`, store.get(key, range)),
    head: (key) => watch.during(`to look at ${key}`, store.head(key)),
    list: (prefix) => store.list(prefix),
    ...(store.emptyFolders ? { emptyFolders: store.emptyFolders.bind(store) } : {}),
    unfinishedPuts: () => store.unfinishedPuts(),
    delete: (key) => watch.during(`to delete ${key}`, store.delete(key)),
    probe: () => watch.during('to answer', store.probe()),
    close: () => store.close(),
  };
}

class StoreWatch {
  private readonly waiting = new Map<number, { what: string; since: number }>();
  private timer: NodeJS.Timeout | null = null;
  private count = 0;
  private toldAt = Number.NEGATIVE_INFINITY;
  private readonly address: string;
  private readonly run: string;
  private readonly redis: Redis;
  private readonly log: Log;

  constructor(address: string, run: string, redis: Redis, log: Log) {
    this.address = address;
    this.run = run;
    this.redis = redis;
    this.log = log;
  }

  async during<Answer>(what: string, answer: Promise<Answer>): Promise<Answer> {
    const id = ++this.count;
    this.waiting.set(id, { what, since: performance.now() });
    this.timer ??= setInterval(() => this.look(), LOOK_MS).unref();
    try {
      return await answer;
    } finally {
      this.waiting.delete(id);
      if (this.waiting.size === 0) this.rest();
    }
  }

  private look(): void {
    const [oldest] = this.waiting.values();
    const now = performance.now();
    if (oldest === undefined || now - oldest.since < SLOW_MS) return;
    const seconds = Number(((now - oldest.since) / 1000).toFixed(1));
    const text = `waiting for the store ${this.address} ${oldest.what}, since ${seconds} s: nothing is lost, it goes on when that is done`;
    void this.redis.set(storeWaitKey(runKey(this.run)), text, 'PX', GOOD_FOR_MS).catch(() => {});
    if (now - this.toldAt < AGAIN_MS) return;
    this.toldAt = now;
    const told = {
      run: this.run,
      store: this.address,
      what: oldest.what,
      since_s: seconds,
      waiting: this.waiting.size,
    };
    this.log.warn(told, 'waiting for the store');
  }

  private rest(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    if (this.toldAt === Number.NEGATIVE_INFINITY) return;
    this.toldAt = Number.NEGATIVE_INFINITY;
    this.log.info({ run: this.run, store: this.address }, 'the store answers again');
  }
}
