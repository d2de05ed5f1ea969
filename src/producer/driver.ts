// The driver keeps one run going: its window of open members filled, due members queued, its clock ticking, its end
// noticed. One driver a run (a lease with an epoch that every planning script checks); whoever drives may die at any
// moment, and the next one goes on from what the ledger says.
//
//   running ──all groups closed──> (collector writes the manifest) ──> done
//     ├─ paused ──probe after a rest──> running … after paused_s without progress ──> stopped
//     ├─ cancelled ──open and unopened groups closed──> (manifest) ──> cancelled
//     ├─ stopped by a verifier that refuses ──the same──> (manifest) ──> stopped
//     └─ stopped

import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { messageOf } from '../shared/errors.ts';
import { RunLedger, type RunState, type Tick } from '../shared/ledger/run-ledger.ts';
import type { RunSettings } from '../shared/ledger/run-settings.ts';
import type { Log } from '../shared/log.ts';
import type { PlanEntry } from '../shared/plan/plan.ts';
import type { MemberQueue } from '../shared/queue.ts';

const ROUND_MS = 100;
const LEASE_EVERY_MS = 2_000;
/** Groups opened in one script call. */
const OPEN_BATCH = 64;
const CLOSE_BATCH = 200;
const DUE_BATCH = 500;
/** Share of Redis's maxmemory above which nothing new is opened. */
const HIGH_WATER = 0.6;
const MEMORY_EVERY_MS = 1_000;
/** A round of a cancelled run closes groups for this long. */
const CANCEL_SLICE_MS = 1_000;
/** A paused run is tried again after this, then after twice as long, up to the last. */
const PROBE_MS = [2_000, 30_000] as const;

export interface DriverOptions {
  redis: Redis;
  queue: MemberQueue;
  settings: RunSettings;
  groups: number;
  groupSize: number;
  plan: readonly PlanEntry[];
  owner: string;
  log: Log;
  /** Called after every round, for progress. */
  onTick?: (tick: Tick) => void;
}

export type DriverEnd = { state: RunState } | { lost: true } | { drained: true } | { silent: true };

export class Driver {
  private readonly ledger: RunLedger;
  private readonly options: DriverOptions;
  private epoch: string;
  private draining: () => void = () => {};
  private readonly drained: Promise<void>;
  /** Since when Redis has not answered, by our own clock: the run's does not run without it. */
  private silentSince: number | null = null;
  private leasedAt = Number.NEGATIVE_INFINITY;
  private memoryAt = Number.NEGATIVE_INFINITY;
  private full = false;
  private pausedAt: number | null = null;
  private probeAt = 0;
  private probes = 0;
  private progress = -1;

  constructor(run: string, epoch: string, options: DriverOptions) {
    this.options = options;
    this.epoch = epoch;
    this.ledger = new RunLedger(options.redis, run);
    this.drained = new Promise((resolve) => {
      this.draining = resolve;
    });
  }

  /** Opens and queues nothing more; `drive` ends. */
  drain(): void {
    this.draining();
  }

  /** Runs until the run is over, rests for good, or another driver has it. Rides through a Redis that is away. */
  async drive(): Promise<DriverEnd> {
    const over = new AbortController();
    // A round may hang on a Redis that is away; being asked to end must not.
    const drained = this.drained.then((): DriverEnd => ({ drained: true }));
    try {
      return await Promise.race([this.loop(over.signal), drained]);
    } finally {
      over.abort();
    }
  }

  private async loop(over: AbortSignal): Promise<DriverEnd> {
    while (!over.aborted) {
      const began = performance.now();
      try {
        const end = await this.round();
        if (end !== null) return end;
        this.silentSince = null;
      } catch (error) {
        if (this.hasBeenSilent(began, messageOf(error))) return { silent: true };
      }
      await wait(ROUND_MS);
    }
    return { drained: true };
  }

  /** Redis away is a pause like any other: the run waits `paused_s` for it. */
  private hasBeenSilent(since: number, why: string): boolean {
    const { log, settings } = this.options;
    if (this.silentSince === null) log.warn({ run: this.ledger.run, error: why }, 'waiting for Redis');
    this.silentSince ??= since;
    return performance.now() - this.silentSince > settings.pausedS * 1000;
  }

  private async round(): Promise<DriverEnd | null> {
    if (performance.now() - this.leasedAt > LEASE_EVERY_MS) {
      const driven = await this.ledger.drive(this.options.owner);
      if (!('epoch' in driven)) return { lost: true };
      this.epoch = driven.epoch;
      this.leasedAt = performance.now();
    }
    const tick = await this.ledger.tick(this.epoch);
    if (tick === null) return { lost: true };
    this.options.onTick?.(tick);
    if (tick.accepted > this.progress) {
      this.progress = tick.accepted;
      if (tick.state === 'running') this.pausedAt = null;
    }
    switch (tick.state) {
      case 'done':
        return { state: tick.state };
      case 'stopped':
        return (await this.ledger.field('exit')) === '2' ? await this.finish(tick, 'stopped') : { state: tick.state };
      case 'cancelled':
        return await this.finish(tick, 'cancelled');
      case 'paused':
        await this.probe();
        return null;
      case 'running':
        await this.fill(tick);
        await this.queueDue();
        return null;
    }
  }

  /** Opens groups while fewer members than the window are open and Redis has room. */
  private async fill(tick: Tick): Promise<void> {
    const { groupSize, plan, settings } = this.options;
    let { open, next } = tick;
    if (next >= plan.length || open >= settings.inFlight || (await this.isFull())) return;
    while (next < plan.length && open < settings.inFlight) {
      const room = Math.max(1, Math.floor((settings.inFlight - open) / groupSize));
      const batch = plan.slice(next, next + Math.min(OPEN_BATCH, room));
      const taken = await this.ledger.openGroups(this.epoch, next, batch);
      if (taken < 0) return;
      next += taken;
      open += taken * groupSize;
    }
  }

  private async queueDue(): Promise<void> {
    for (;;) {
      const due = await this.ledger.due(this.epoch, DUE_BATCH);
      if (due === null || due.length === 0) return;
      await this.options.queue.add(this.ledger.run, due);
      if (due.length < DUE_BATCH) return;
    }
  }

  /** Groups that were never opened are opened only to be closed: a plan of 100,000 must not take a round for each batch. */
  private async finish(tick: Tick, state: 'cancelled' | 'stopped'): Promise<DriverEnd | null> {
    const { plan } = this.options;
    const until = performance.now() + CANCEL_SLICE_MS;
    let next = tick.next;
    do {
      if ((await this.ledger.closeOpen(CLOSE_BATCH)) === CLOSE_BATCH) continue;
      if (next >= plan.length) break;
      if (await this.isFull()) return null;
      const taken = await this.ledger.openGroups(this.epoch, next, plan.slice(next, next + OPEN_BATCH));
      if (taken < 0) return null;
      next += taken;
    } while (performance.now() < until);
    if (next < plan.length || tick.closed < this.options.groups) return null;
    return (await this.ledger.field('manifest')) === null ? null : { state };
  }

  /** A paused run goes on by itself: it is set running again after a rest, and whoever still finds the fault pauses it again. */
  private async probe(): Promise<void> {
    const now = performance.now();
    if (this.pausedAt === null) {
      this.pausedAt = now;
      this.probes = 0;
      this.probeAt = 0;
      this.options.log.warn({ run: this.ledger.run, reason: await this.ledger.field('reason') }, 'run paused');
    }
    if (this.probeAt === 0) this.probeAt = now + Math.min(PROBE_MS[0] * 2 ** this.probes, PROBE_MS[1]);
    if (now - this.pausedAt > this.options.settings.pausedS * 1000) {
      const reason = (await this.ledger.field('reason')) ?? '';
      await this.ledger.setState('stopped', `paused for longer than limits.paused_s: ${reason}`, '3');
    } else if (now > this.probeAt) {
      this.probeAt = 0;
      this.probes++;
      await this.ledger.setState('running');
    }
  }

  private async isFull(): Promise<boolean> {
    const now = performance.now();
    if (now - this.memoryAt < MEMORY_EVERY_MS) return this.full;
    this.memoryAt = now;
    const memory = await this.options.redis.info('memory');
    const figure = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1] ?? 0);
    const full = figure('maxmemory') > 0 && figure('used_memory') > HIGH_WATER * figure('maxmemory');
    if (full !== this.full)
      this.options.log.warn(
        { used: figure('used_memory'), max: figure('maxmemory') },
        full ? 'Redis is above its high-water mark: opening nothing new' : 'Redis has room again',
      );
    if (full !== this.full)
      await this.ledger.setField('reason', full ? 'Redis is above its high-water mark: nothing new is opened' : '');
    this.full = full;
    return full;
  }
}
