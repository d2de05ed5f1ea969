// Boxes of one image and one set of limits: those made ahead, those between two episodes of a run, those who wait for
// one, and the starts under way. A start belongs to nobody: who waits longest gets the next box, and one that fails is made
// again while anybody waits.

import { performance } from 'node:perf_hooks';
import { messageOf } from '../../../shared/errors.ts';
import { type Box, BoxLost } from '../../../shared/sandbox.ts';
import { within } from '../../../shared/within.ts';
import { Demand } from './demand.ts';
import type { Pass, StartGate } from './start-gate.ts';

export interface ShelfBounds {
  /** For a box, from asking to having it. */
  waitMs: number;
  /** Boxes made ahead. */
  ahead: number;
  /** For how long it counts that one was taken. */
  demandMs: number;
  /** A box made ahead is replaced at this age, far from the end of its life. */
  aheadAgeMs: number;
  /** A box between two episodes is given up when no episode comes for it. */
  idleMs: number;
  /** Life of a box that episodes have in turn. */
  episodes: number;
  recycledAgeMs: number;
  /** For a reset between two episodes. */
  resetMs: number;
}

export interface Stocked {
  box: Box;
  pass: Pass;
  madeAt: number;
  /** Since when it stands on the shelf. */
  idleAt: number;
  episodes: number;
  /** Who may have it again; null: nobody has had it. */
  recycle: string | null;
}

interface Waiter {
  recycle: string | null;
  have(stocked: Stocked): void;
  fail(error: unknown): void;
}

interface Start {
  control: AbortController;
  entered: boolean;
  over: Promise<void>;
}

/** Failures in a row, alike, after which who waits is told. */
const ALIKE = 4;
const BACKOFF_MS = [200, 400, 800, 1_600, 3_000] as const;

export class Shelf {
  private readonly open: (signal: AbortSignal) => Promise<Box>;
  private readonly memoryMb: number;
  private readonly gate: StartGate;
  private readonly bounds: ShelfBounds;
  private readonly demand: Demand;
  private ready: Stocked[] = [];
  private kept: Stocked[] = [];
  private readonly waiters: Waiter[] = [];
  private readonly starts = new Set<Start>();
  private readonly closing = new Set<Promise<void>>();
  /** Boxes that episodes have. */
  private lent = 0;
  private failure: { signature: string; inARow: number; error: unknown } | null = null;
  private retry: NodeJS.Timeout | null = null;
  private closed = false;

  constructor(open: (signal: AbortSignal) => Promise<Box>, memoryMb: number, gate: StartGate, bounds: ShelfBounds) {
    this.open = open;
    this.memoryMb = memoryMb;
    this.gate = gate;
    this.bounds = bounds;
    this.demand = new Demand(bounds.ahead, bounds.demandMs);
  }

  /** Nothing stands here, is lent, starts, ends or is waited for. */
  get empty(): boolean {
    const { ready, kept, lent, waiters, starts, closing } = this;
    return ready.length + kept.length + lent + waiters.length + starts.size + closing.size === 0;
  }

  /** Throws the signal's reason, or BoxLost (`start`) when none could be had within the wait. */
  async take(recycle: string | null, signal: AbortSignal): Promise<Stocked> {
    const taken = await this.find(recycle, signal);
    this.lent += 1;
    return taken;
  }

  private async find(recycle: string | null, signal: AbortSignal): Promise<Stocked> {
    signal.throwIfAborted();
    const again = recycle === null ? null : this.pick(this.kept, (one) => one.recycle === recycle);
    if (again !== null) return again;
    this.demand.took(performance.now());
    const fresh = this.pick(this.ready, () => true);
    try {
      if (fresh !== null) return fresh;
      return await this.wait(recycle, signal);
    } finally {
      this.pump();
    }
  }

  /** After an episode; `recycle` only where the box may be had again. */
  async giveBack(stocked: Stocked, sound: boolean, recycle: string | null): Promise<void> {
    try {
      await this.keepOrEnd(stocked, sound, recycle);
    } finally {
      this.lent -= 1;
    }
  }

  private async keepOrEnd(stocked: Stocked, sound: boolean, recycle: string | null): Promise<void> {
    if (recycle === null || !sound || !this.fit(stocked) || !(await this.proven(stocked.box))) {
      await this.end(stocked);
      return;
    }
    if (this.closed) return await this.end(stocked);
    const next = { ...stocked, recycle, idleAt: performance.now() };
    if (!this.handOver(next)) this.kept.push(next);
    this.pump();
  }

  /** Boxes that wait for work; their memory may be wanted elsewhere. Whoever waits here cannot use them, or would have them. */
  yieldIdle(): void {
    for (const stocked of [...this.ready.splice(0), ...this.kept.splice(0)]) void this.end(stocked);
  }

  /** What has become too old, too many or unwell goes; what is missing is made. */
  tend(): void {
    const now = performance.now();
    const { aheadAgeMs, idleMs } = this.bounds;
    const spare = this.ready.length - this.demand.target(now);
    const gone = [
      ...this.ready.filter((one, i) => i < spare || !one.box.well || now - one.madeAt > aheadAgeMs),
      ...this.kept.filter((one) => !one.box.well || now - one.idleAt > idleMs),
    ];
    this.ready = this.ready.filter((one) => !gone.includes(one));
    this.kept = this.kept.filter((one) => !gone.includes(one));
    for (const stocked of gone) void this.end(stocked);
    this.pump();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.calm();
    const starts = [...this.starts];
    for (const start of starts)
      start.control.abort(new BoxLost('start', 'engine', 'start:closed', 'the pool is closed'));
    for (const waiter of this.waiters.splice(0))
      waiter.fail(new BoxLost('start', 'engine', 'start:closed', 'the pool is closed'));
    for (const stocked of [...this.ready.splice(0), ...this.kept.splice(0)]) void this.end(stocked);
    await Promise.all(starts.map((start) => start.over));
    while (this.closing.size > 0) await Promise.all(this.closing);
  }

  private pick(from: Stocked[], fits: (one: Stocked) => boolean): Stocked | null {
    // The last one that came is the likeliest to be sound, and lets the others grow old.
    for (let at = from.length - 1; at >= 0; at -= 1) {
      const one = from[at] as Stocked;
      if (!fits(one)) continue;
      from.splice(at, 1);
      if (one.box.well) return one;
      void this.end(one);
    }
    return null;
  }

  private wait(recycle: string | null, signal: AbortSignal): Promise<Stocked> {
    if (this.closed) throw new BoxLost('start', 'engine', 'start:closed', 'the pool is closed');
    return new Promise<Stocked>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
        const at = this.waiters.indexOf(waiter);
        if (at >= 0) this.waiters.splice(at, 1);
      };
      const waiter: Waiter = {
        recycle,
        have: (stocked) => {
          settle();
          resolve(stocked);
        },
        fail: (error) => {
          settle();
          reject(error as Error);
        },
      };
      const abort = (): void => waiter.fail(signal.reason);
      const timer = setTimeout(() => waiter.fail(this.late()), this.bounds.waitMs);
      signal.addEventListener('abort', abort, { once: true });
      this.waiters.push(waiter);
      this.pump();
    });
  }

  private late(): BoxLost {
    const { failure, bounds } = this;
    const why = failure === null ? 'its turn to start did not come' : messageOf(failure.error);
    const told = `no box within ${Math.round(bounds.waitMs / 1000)} s: ${why}`;
    return new BoxLost('start', 'engine', failure?.signature ?? 'start:wait', told, failure?.error);
  }

  /** As many starts as there are waiting, and missing ones to have ready. */
  private pump(): void {
    if (this.closed) return;
    const ahead = this.demand.target(performance.now()) - this.ready.length;
    const wanted = this.waiters.length + (this.failure === null ? Math.max(0, ahead) : 0);
    const waiting = [...this.starts].filter((start) => !start.entered);
    for (let more = this.starts.size - wanted; more > 0 && waiting.length > 0; more -= 1)
      waiting.pop()?.control.abort(new Error('not wanted any more'));
    if (this.retry !== null) return;
    for (let more = wanted - this.starts.size; more > 0; more -= 1) {
      const start: Start = { control: new AbortController(), entered: false, over: Promise.resolve() };
      this.starts.add(start);
      start.over = this.start(start);
    }
  }

  private async start(start: Start): Promise<void> {
    const { signal } = start.control;
    let pass: Pass | null = null;
    let box: Box | null = null;
    try {
      pass = await this.gate.enter(this.memoryMb, () => this.waiters.length > 0, signal);
      start.entered = true;
      const began = performance.now();
      box = await this.open(signal);
      const now = performance.now();
      this.demand.started(now - began);
      this.failure = null;
      this.calm();
      this.starts.delete(start);
      this.offer({ box, pass, madeAt: now, idleAt: now, episodes: 0, recycle: null });
    } catch (error) {
      this.starts.delete(start);
      if (!signal.aborted) this.failed(error);
    } finally {
      if (box === null) pass?.gone();
      else pass?.started();
    }
    this.pump();
  }

  private offer(stocked: Stocked): void {
    if (this.closed) void this.end(stocked);
    else if (!this.handOver(stocked)) {
      if (this.ready.length < this.demand.target(performance.now())) this.ready.push(stocked);
      else void this.end(stocked);
    }
  }

  private handOver(stocked: Stocked): boolean {
    const waiter = this.waiters.find((one) => stocked.recycle === null || one.recycle === stocked.recycle);
    waiter?.have(stocked);
    return waiter !== undefined;
  }

  private failed(error: unknown): void {
    const signature = error instanceof BoxLost ? error.signature : 'start:unknown';
    const inARow = this.failure?.signature === signature ? this.failure.inARow + 1 : 1;
    this.failure = { signature, inARow, error };
    const never = signature === 'start:memory';
    const other = [...this.starts].some((start) => start.entered);
    if (never || (inARow >= ALIKE && !other)) {
      for (const waiter of [...this.waiters]) waiter.fail(error);
      this.failure = { signature, inARow: 0, error };
    }
    if (this.retry !== null || this.closed) return;
    const pause = BACKOFF_MS[Math.min(inARow, BACKOFF_MS.length) - 1] as number;
    this.retry = setTimeout(() => {
      this.retry = null;
      this.pump();
    }, pause);
  }

  /** A start has succeeded: there is nothing to be patient about. */
  private calm(): void {
    if (this.retry !== null) clearTimeout(this.retry);
    this.retry = null;
  }

  private fit(stocked: Stocked): boolean {
    const { episodes, recycledAgeMs } = this.bounds;
    return !this.closed && stocked.episodes < episodes && performance.now() - stocked.madeAt < recycledAgeMs;
  }

  private async proven(box: Box): Promise<boolean> {
    const reset = box.reset().then(
      () => true,
      () => false,
    );
    return (await within(reset, this.bounds.resetMs, false)) && box.well;
  }

  private end(stocked: Stocked): Promise<void> {
    const ending = stocked.box.close().finally(() => {
      stocked.pass.gone();
      this.closing.delete(ending);
    });
    this.closing.add(ending);
    return ending;
  }
}
