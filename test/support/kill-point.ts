// kill -9 at a place: everything that a farm in this process writes, to Redis and to the store, is counted, and at the n-th
// write it is dead. Nothing that was asked for by then is ever answered, and nothing more is begun.

import type { Redis } from 'ioredis';
import type { Store } from '../../src/shared/store/store.ts';

/** `done`: the write is done, and nobody hears of it. `lost`: it is not, though all that was under way beside it is. */
export type KillMode = 'done' | 'lost';

const READS = new Set(['get', 'hget', 'hmget', 'hgetall', 'xrange', 'zrange', 'exists', 'scan', 'info', 'ping']);
/** So long after a write was lost nothing is under way any more. */
const QUIET_MS = 20;

export class Killed extends Error {}

export class KillPoint {
  /** What was written last: where the farm died. */
  where = '';
  /** Writes so far, and those of them that others were under way beside. */
  writes = 0;
  readonly crowded = new Set<number>();
  readonly died: Promise<void>;
  private readonly writing = new Set<number>();
  private flying = 0;
  private state: 'alive' | 'losing' | 'dead' = 'alive';
  private buried = false;
  private readonly at: number;
  private readonly mode: KillMode;
  private die: () => void = () => {};
  private readonly hanging = new Set<(killed: Killed) => void>();

  /** Dies at write number `at`, from 1. */
  constructor(at: number, mode: KillMode) {
    this.at = at;
    this.mode = mode;
    this.died = new Promise((resolve) => {
      this.die = resolve;
    });
  }

  /** What waits for an answer that never comes is let go, so that nothing is left of it: it finds everything dead. */
  bury(): void {
    this.state = 'dead';
    this.buried = true;
    for (const reject of this.hanging) reject(new Killed(this.where));
    this.hanging.clear();
  }

  redis(redis: Redis): Redis {
    const send = redis.sendCommand.bind(redis);
    redis.sendCommand = (command, stream) =>
      this.step(READS.has(command.name) ? null : command.name, () => send(command, stream) as Promise<unknown>);
    return redis;
  }

  store(store: Store): Store {
    return {
      address: store.address,
      put: (key, bytes) => this.step(`put ${key}`, () => store.put(key, bytes)),
      putNew: (key, bytes) => this.step(`putNew ${key}`, () => store.putNew(key, bytes)),
      delete: (key) => this.step(`delete ${key}`, () => store.delete(key)),
      get: (key, range) => this.step(null, () => store.get(key, range)),
      head: (key) => this.step(null, () => store.head(key)),
      list: (prefix) => store.list(prefix),
      unfinishedPuts: () => store.unfinishedPuts(),
      probe: () => store.probe(),
      close: () => store.close(),
    };
  }

  /** `write`: its name; null for what only reads. */
  private async step<T>(write: string | null, work: () => Promise<T>): Promise<T> {
    if (this.state === 'dead') return await this.never();
    const number = write === null ? null : ++this.writes;
    if (number === this.at) return await this.killAt(`${this.mode} at ${number}, ${write}`, work);
    this.flying++;
    if (number !== null) this.crowd(number);
    try {
      return await work();
    } finally {
      if (number !== null) this.writing.delete(number);
      this.landed();
      if (this.isDead()) await this.never();
    }
  }

  private async killAt<T>(where: string, work: () => Promise<T>): Promise<T> {
    this.where = where;
    if (this.mode === 'lost') {
      this.state = 'losing';
      this.awaitQuiet();
    } else {
      this.state = 'dead';
      this.flying++;
      const landed = (): void => this.landed();
      void work().then(landed, landed);
    }
    return await this.never();
  }

  private crowd(number: number): void {
    this.writing.add(number);
    if (this.writing.size > 1) for (const one of this.writing) this.crowded.add(one);
  }

  private isDead(): boolean {
    return this.state === 'dead';
  }

  private landed(): void {
    this.flying--;
    if (this.flying === 0 && this.isDead()) this.die();
  }

  private awaitQuiet(quietSince = performance.now()): void {
    setImmediate(() => {
      if (this.isDead()) return;
      const since = this.flying > 0 ? performance.now() : quietSince;
      if (performance.now() - since < QUIET_MS) return this.awaitQuiet(since);
      this.state = 'dead';
      this.die();
    });
  }

  private never<T>(): Promise<T> {
    if (this.buried) return Promise.reject(new Killed(this.where));
    return new Promise<T>((_, reject) => this.hanging.add(reject));
  }
}
