// The driver keeps one run going: its share of the fleet's window filled, its clock ticking, its end noticed. It looks ten
// times a second, more often while it gives many places out, and at once when places fall free. One driver a run (a lease with
// an epoch that every planning script checks); whoever drives may die at any moment, and the next one goes on from what the ledger says.
//
//   running ──all groups closed──> (collector writes the manifest) ──> done
//     ├─ paused ──probe after a rest──> running … after paused_s without progress ──> stopped
//     ├─ cancelled ──open and unopened groups closed──> (manifest) ──> cancelled
//     ├─ stopped by a verifier that refuses ──the same──> (manifest) ──> stopped
//     └─ stopped

import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../shared/errors.ts';
import type { Fleet } from '../shared/fleet/fleet.ts';
import { MEMBER_LANES, type MemberLane } from '../shared/lane.ts';
import { type LostMember, openMembers, RunLedger, type RunState, type Tick } from '../shared/ledger/run-ledger.ts';
import type { RunSettings } from '../shared/ledger/run-settings.ts';
import type { Log } from '../shared/log.ts';
import type { PlanEntry } from '../shared/plan/plan.ts';
import type { PlanIndex } from '../shared/plan/plan-index.ts';
import type { MemberQueue } from '../shared/queue.ts';
import type { Redis } from '../shared/redis/client.ts';
import { redisFault } from '../shared/redis/fault.ts';
import { readMemory } from '../shared/redis/memory.ts';
import { Comeback } from './comeback.ts';
import { Opening } from './opening.ts';

const ROUND_MS = 100;
/** While so many places of light members are given out in a round: what they leave is filled again before it stands empty. */
const BUSY = { roundMs: 20, least: 16 } as const;
const LEASE_EVERY_MS = 2_000;
const CLOSE_BATCH = 200;
/** What goes on is said again after this. */
const AGAIN_MS = 10_000;
const MEMORY_EVERY_MS = 1_000;
/** A round of a cancelled run closes groups for this long. */
const CANCEL_SLICE_MS = 1_000;
/** A paused run is tried again after this, then after twice as long, up to the last. */
const PROBE_MS = [2_000, 30_000] as const;

export interface DriverOptions {
  redis: Redis;
  queue: MemberQueue;
  fleet: Fleet;
  settings: RunSettings;
  groups: number;
  groupSize: number;
  plan: Pick<PlanIndex, 'entries'>;
  owner: string;
  log: Log;
  /** Called after every round, for progress. */
  onTick?: (tick: Tick) => void;
}

export type DriverEnd = { state: RunState } | { lost: true } | { drained: true } | { silent: true };

export class Driver {
  private readonly ledger: RunLedger;
  private readonly opening: Opening;
  private readonly options: DriverOptions;
  private epoch: string;
  private draining: () => void = () => {};
  private readonly drained: Promise<void>;
  /** Since when Redis has not answered, by our own clock: the run's does not run without it. */
  private silentSince: number | null = null;
  private leasedAt = Number.NEGATIVE_INFINITY;
  private memoryAt = Number.NEGATIVE_INFINITY;
  private full = false;
  private readonly comeback: Comeback;
  private refusedToldAt = Number.NEGATIVE_INFINITY;
  private pausedAt: number | null = null;
  private probeAt = 0;
  private probes = 0;
  private progress = -1;
  private woken: () => void = () => {};
  private awake = false;
  /** The last tick of a run at work, kept up to date until the next. */
  private seen: Tick | null = null;
  private tickedAt = Number.NEGATIVE_INFINITY;
  private roundMs = ROUND_MS;
  private sweptAt = Number.NEGATIVE_INFINITY;

  constructor(run: string, epoch: string, options: DriverOptions) {
    this.options = options;
    this.epoch = epoch;
    this.ledger = new RunLedger(options.redis, run);
    this.opening = new Opening(this.ledger, options);
    this.comeback = new Comeback(this.ledger, options);
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
    // Without it the rounds alone find out; a Redis that is away must not keep the run from its end.
    const deaf = this.options.fleet.listen(this.ledger.run, (lane, out) => this.wake(lane, out));
    deaf.catch(() => {});
    try {
      return await Promise.race([this.loop(over.signal), drained]);
    } finally {
      this.comeback.close();
      over.abort();
      this.wake('', null);
      void deaf.then((stop) => stop()).catch(() => {});
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
        this.roundMs = ROUND_MS;
        if (this.hasBeenSilent(began, error)) return { silent: true };
      }
      await this.rest();
    }
    return { drained: true };
  }

  private wake(lane: string, out: number | null): void {
    const name = MEMBER_LANES.find((l) => l === lane);
    if (name !== undefined && out !== null && this.seen) this.seen.lanes[name].out = out;
    this.awake = true;
    this.woken();
  }

  /** Until the next round is due, or somebody wakes us: also one who did while the last round was under way. */
  private async rest(): Promise<void> {
    if (!this.awake) {
      const timer = new AbortController();
      const woken = new Promise<void>((resolve) => {
        this.woken = resolve;
      });
      await Promise.race([wait(this.roundMs, undefined, { signal: timer.signal }).catch(() => {}), woken]);
      timer.abort();
    }
    this.awake = false;
  }

  /** Redis away is a pause like any other: the run waits `paused_s` for it. One that is full answers, and is waited for as long as it takes. */
  private hasBeenSilent(since: number, error: unknown): boolean {
    const { log, settings } = this.options;
    const told = { run: this.ledger.run, error: messageOf(error) };
    const fault = redisFault(error);
    if (fault === 'full') {
      this.silentSince = null;
      if (performance.now() - this.refusedToldAt < AGAIN_MS) return false;
      this.refusedToldAt = performance.now();
      log.warn(told, 'Redis is full and refuses jobs: members are queued as soon as there is room');
      return false;
    }
    if (this.silentSince === null)
      log.warn(told, fault === 'replica' ? 'waiting for Redis: it is a replica now' : 'waiting for Redis');
    this.silentSince ??= since;
    return performance.now() - this.silentSince > settings.pausedS * 1000;
  }

  private async round(): Promise<DriverEnd | null> {
    await this.comeback.remember();
    if (performance.now() - this.leasedAt > LEASE_EVERY_MS) {
      const driven = await this.ledger.drive(this.options.owner, this.comeback.predecessor);
      if (!('epoch' in driven)) return (await this.comeback.mayBePast(driven.heldBy)) ? null : { lost: true };
      this.epoch = driven.epoch;
      this.leasedAt = performance.now();
    }
    // Woken between two ticks: what the last one said, and what was said since, is enough to go by; not where that leaves no room.
    const seenLately = performance.now() - this.tickedAt < this.roundMs;
    if (this.seen !== null && seenLately && this.seen.open < this.options.settings.inFlight) {
      await this.fill(this.seen);
      return null;
    }
    this.roundMs = ROUND_MS;
    const tick = await this.ledger.tick(this.epoch, this.comeback.look());
    if (tick === 'lost') {
      // Another one's, or a ledger of the past: who holds the lease is asked at once.
      this.leasedAt = Number.NEGATIVE_INFINITY;
      this.seen = null;
      this.awake = true;
      return null;
    }
    if (tick === 'changed') {
      this.seen = null;
      this.progress = -1;
      if (await this.comeback.compare()) this.awake = true;
      else if ((await this.ledger.field('state')) === 'stopped') return { state: 'stopped' };
      return null;
    }
    await this.isFull();
    this.seen = tick.state === 'running' ? structuredClone(tick) : null;
    this.tickedAt = performance.now();
    this.options.onTick?.(tick);
    if (tick.accepted > this.progress) {
      this.progress = tick.accepted;
      if (tick.state === 'running') this.pausedAt = null;
    }
    switch (tick.state) {
      case 'done':
        return { state: tick.state };
      case 'stopped':
        await this.deal(tick, []);
        return (await this.ledger.field('exit')) === '2' ? await this.finish(tick, 'stopped') : { state: tick.state };
      case 'cancelled':
        await this.deal(tick, []);
        return await this.finish(tick, 'cancelled');
      case 'paused':
        await this.deal(tick, []);
        await this.probe();
        return null;
      case 'running':
        await this.fill(this.seen ?? tick);
        return null;
    }
  }

  /** Asks the fleet for places, opens the groups whose members are to have them, and queues those. */
  private async fill(tick: Tick): Promise<void> {
    const ahead = await this.opening.ahead(tick, (await this.isFull()) ? 0 : this.opening.reach(tick));
    if (ahead === null) return;
    const places = await this.deal(tick, ahead);
    const dealt = MEMBER_LANES.some((lane) => places[lane] > 0);
    if (dealt) await this.opening.forPlaces(this.epoch, tick, places, ahead);
    if (places.light >= BUSY.least) this.roundMs = BUSY.roundMs;
    const now = performance.now();
    if (!dealt && now - this.sweptAt < ROUND_MS) return;
    this.sweptAt = now;
    const due = await this.ledger.due(this.epoch, places);
    if (due?.lanes) Object.assign(tick, { lanes: due.lanes, open: openMembers(due.lanes) });
    else this.seen = null;
    if (due !== null && due.lost.length > 0) this.tellLost(due.lost);
    const { queue, fleet } = this.options;
    if (due !== null && due.members.length > 0) await queue.add(this.ledger.run, due.members, fleet.lightPace);
  }

  /** A line a worker: it died, or was cut off, and nobody said so. */
  private tellLost(lost: readonly LostMember[]): void {
    for (const worker of new Set(lost.map((x) => x.worker))) {
      const members = lost.filter((x) => x.worker === worker).map((x) => `${x.group}-${x.member}`);
      const told = { run: this.ledger.run, worker, members: members.slice(0, 20), count: members.length };
      this.options.log.warn(
        told,
        'a worker was not heard of until its leases ran out: its members are given to others',
      );
    }
  }

  /** What the run may put out now. A run that rests asks for nothing, and says what it still has out. */
  private async deal({ lanes, state }: Tick, next: readonly PlanEntry[]): Promise<Record<MemberLane, number>> {
    const { fleet, groupSize, settings } = this.options;
    const ahead: Record<MemberLane, number> = { rollout: 0, light: 0, verify: 0 };
    for (const { lane } of next) ahead[lane] += groupSize;
    const room = settings.inFlight - MEMBER_LANES.reduce((n, lane) => n + lanes[lane].out, 0);
    const most: Record<MemberLane, number> = { rollout: room, light: room, verify: Number.POSITIVE_INFINITY };
    const asks = MEMBER_LANES.map((lane) => ({
      lane,
      out: lanes[lane].out,
      want: state === 'running' ? Math.min(lanes[lane].ready + ahead[lane], most[lane]) : 0,
    }));
    const places = await fleet.deal(this.ledger.run, asks);
    return { ...places, light: Math.min(places.light, Math.max(0, room - places.rollout)) };
  }

  /** Groups that were never opened are opened only to be closed: a plan of 100,000 must not take a round for each batch. */
  private async finish(tick: Tick, state: 'cancelled' | 'stopped'): Promise<DriverEnd | null> {
    const { groups } = this.options;
    const until = performance.now() + CANCEL_SLICE_MS;
    const left = { ...tick };
    do {
      if ((await this.ledger.closeOpen(CLOSE_BATCH)) === CLOSE_BATCH) continue;
      if (left.next >= groups && left.waiting === 0) break;
      if (await this.isFull()) return null;
      if (!(await this.opening.openNext(this.epoch, left))) return null;
    } while (performance.now() < until);
    if (left.next < groups || left.waiting > 0 || tick.closed < groups + tick.spares) return null;
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
    const memory = await readMemory(this.options.redis);
    const { usedBytes: used, maxBytes: max, aboveHighWater: full } = memory;
    if (full !== this.full)
      this.options.log.warn(
        { run: this.ledger.run, used, max },
        full ? 'Redis is above its high-water mark: opening nothing new' : 'Redis has room again',
      );
    this.full = full;
    return full;
  }
}
