// `farm bench chaos`: a run of members with known rewards on a farm of many processes, while a schedule of faults that a
// seed fixes befalls it. In the end nothing may be lost, counted twice, wrong or left behind; every violation names its seed.

import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../shared/config.ts';
import { missingError } from '../../shared/errors.ts';
import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import { present } from '../../shared/presence.ts';
import { memberFaults, readResults, streamFaults } from './account.ts';
import { faultOf } from './casting.ts';
import { farm } from './command.ts';
import { Follower } from './follower.ts';
import { leftovers } from './leftovers.ts';
import { GROUP_SIZE, type MemberPlan, writeMembers } from './members.ts';
import { ROLLOUT_SLOTS, Scene } from './scene.ts';
import { ALONE, type ChaosEvent, type FaultKind, type StoreKind, scheduleOf } from './schedule.ts';
import { Sight } from './sight.ts';

const LOOK_MS = 100;
/** The run is to last so many times as long as the faults hold. */
const PACE = 2;
const START_MS = 60_000;
/** With no fault holding, some member is accepted within this: what pauses a run is tried again after 30 s at most. */
const STUCK_MS = 90_000;
const LEFT_MS = 30_000;
const COMMAND_MS = 120_000;
/** A ledger that forgot is compared with the store within this. */
const FORGIVEN_MS = 15_000;
/** A fault that somebody must be able to see holds at most this much longer than drawn. */
const HEAL_MS = 60_000;

export interface ChaosOrder {
  seed: bigint;
  kills: number;
  troubles: number;
  only?: readonly FaultKind[];
  store: StoreKind;
  members: number;
  minutes: number;
  /** What goes on, a line at a time. */
  tell: (line: string) => void;
  /** Aborted when the user has had enough. */
  signal: AbortSignal;
}

export interface ChaosReport {
  seed: string;
  store: StoreKind;
  members: number;
  kills: number;
  faults: Record<string, number>;
  /** Events that found the run over, and kinds that this machine cannot have, with the reason. */
  missed: number;
  left_out: Record<string, string>;
  seconds: number;
  accepted: number;
  /** Leases that ran out, answers that came too late to count, processes started, connections of the trainer. */
  lost_leases: number;
  late_answers: number;
  starts: number;
  connections: number;
  /** Times that the trainer was told that its cursor is gone, and went back. */
  rewinds: number;
  violations: string[];
  /** Where the logs are; null if there was nothing to keep them for. */
  kept: string | null;
}

export async function benchChaos(order: ChaosOrder): Promise<ChaosReport> {
  const events = scheduleOf(order.seed, order);
  const scene = await Scene.set(readConfig(), new Set(events.map((e) => e.kind)), order.store);
  const fire = new Fire(order, scene, events);
  let keep = true;
  try {
    const report = await fire.play();
    keep = report.violations.length > 0;
    return { ...report, kept: keep ? scene.folder : null };
  } finally {
    await scene.close({ keep });
  }
}

class Fire {
  private readonly order: ChaosOrder;
  private readonly scene: Scene;
  private readonly events: readonly ChaosEvent[];
  private readonly ledger: RunLedger;
  private readonly violations: string[] = [];
  private readonly counts: Record<string, number> = {};
  private readonly leftOut: Record<string, string> = {};
  private readonly began = performance.now();
  private readonly holding = new Set<Promise<void>>();
  private kills = 0;
  private missed = 0;
  private accepted = 0;
  private members = Number.POSITIVE_INFINITY;
  private progressAt = performance.now();
  /** Until then what was accepted may be open again. */
  private forgivenUntil = 0;

  constructor(order: ChaosOrder, scene: Scene, events: readonly ChaosEvent[]) {
    this.order = order;
    this.scene = scene;
    this.events = events;
    this.ledger = new RunLedger(scene.ledger.admin, scene.run);
  }

  async play(): Promise<ChaosReport> {
    const { scene, order } = this;
    const groups = Math.max(1, Math.ceil(order.members / GROUP_SIZE));
    const plan = writeMembers(scene.folder, groups, scene.verifier, {
      seconds: (this.events.reduce((sum, event) => sum + event.holdMs, 0) * PACE) / 1000,
      sandboxes: ROLLOUT_SLOTS * scene.troupe.of('rollout').length,
    });
    this.members = plan.members.length;
    await this.workersAreThere();
    const submitted = await farm(scene.environment, COMMAND_MS, 'run', plan.spec, '--run-id', scene.run, '--detach');
    if (submitted.code !== 0) throw missingError('chaos_submit', `the run could not be submitted: ${submitted.err}`);
    const follower = new Follower(scene.run, scene.gatewayPorts);
    const sight = new Sight(scene.environment, scene.run, scene.logs);
    try {
      await sight.ready();
      await this.burn(plan, sight);
      const over = await this.comesToItsEnd(plan.members.length);
      await follower.end(groups, over ? 30_000 : 0);
    } finally {
      sight.close();
      await Promise.all(this.holding);
    }
    // Cut short, there is nothing to hold an account of: all of it is ended at once.
    if (!order.signal.aborted) await this.account(plan, follower);
    const fields = await this.ledger.fields().catch((): Record<string, string> => ({}));
    if (!order.signal.aborted) await this.nothingIsLeft();
    return {
      seed: String(order.seed),
      store: order.store,
      members: plan.members.length,
      kills: this.kills,
      faults: this.counts,
      missed: this.missed,
      left_out: this.leftOut,
      seconds: Math.round((performance.now() - this.began) / 1000),
      accepted: Number(fields.accepted ?? 0),
      lost_leases: Number(fields.lost ?? 0),
      late_answers: Number(fields.late ?? 0),
      starts: scene.troupe.starts,
      connections: follower.connections,
      rewinds: follower.rewinds,
      violations: this.violations,
      kept: null,
    };
  }

  private async workersAreThere(): Promise<void> {
    const deadline = performance.now() + START_MS;
    for (;;) {
      const roles = new Set((await present(this.scene.ledger.admin)).map((p) => p.role));
      if (roles.size === 3) return;
      if (performance.now() > deadline)
        throw missingError('chaos_start', `the farm did not start: only ${[...roles].join(', ') || 'nobody'} is there`);
      await wait(LOOK_MS);
    }
  }

  private async burn(plan: MemberPlan, sight: Sight): Promise<void> {
    for (const [i, event] of this.events.entries()) {
      const lack = this.scene.lacks(event.kind);
      if (lack !== null) {
        this.leftOut[event.kind] = lack;
        continue;
      }
      if (!(await this.reaches(event.at * plan.members.length))) {
        this.missed += this.events.length - i;
        return;
      }
      if (event.kind === ALONE) await Promise.all(this.holding);
      const alone = this.holding.size === 0 && !event.overlaps;
      const held = this.hold(event, alone ? sight : null, i);
      this.holding.add(held);
      void held.then(() => this.holding.delete(held));
      if (!event.overlaps) await Promise.all(this.holding);
    }
    await Promise.all(this.holding);
  }

  /** One fault from its beginning to its end; `sight` where it is the only one. */
  private async hold(event: ChaosEvent, sight: Sight | null, i: number): Promise<void> {
    const fault = await faultOf(this.scene, event);
    const name = `${event.kind} (${fault.what})`;
    const since = performance.now();
    try {
      if (fault.forgets) this.forgivenUntil = Number.POSITIVE_INFINITY;
      await fault.begin();
      this.counts[event.kind] = (this.counts[event.kind] ?? 0) + 1;
      if (/killed$/.test(event.kind)) this.kills++;
      this.order.tell(`${i + 1}/${this.events.length} ${name}: ${this.accepted} accepted`);
      const unseen =
        sight !== null && fault.visible !== null ? await sight.missing(fault.visible, since, () => this.isOver()) : [];
      this.blame(...unseen.map((what) => `not to be seen during ${name}: ${what}`));
      await wait(Math.max(0, event.holdMs - (performance.now() - since)), undefined, { signal: this.order.signal });
      if (sight !== null && event.holdMs > 8_000) this.blame(...((await fault.judge?.()) ?? []));
    } catch (error) {
      if (!this.order.signal.aborted)
        this.blame(`${name} could not be played: ${error instanceof Error ? error.message : error}`);
    } finally {
      await this.heal(fault, name);
      if (fault.forgets) this.forgivenUntil = performance.now() + FORGIVEN_MS;
      this.progressAt = performance.now();
    }
  }

  private async heal(fault: { heal(): Promise<void> }, name: string): Promise<void> {
    const deadline = performance.now() + HEAL_MS;
    for (;;) {
      try {
        return await fault.heal();
      } catch (error) {
        // Another fault may stand in the way of mending this one (a Redis that is away, of emptying it).
        if (performance.now() > deadline)
          return this.blame(`${name} could not be mended: ${error instanceof Error ? error.message : error}`);
        await wait(LOOK_MS * 5);
      }
    }
  }

  /** True when so many members are accepted; false if the run is over, stuck, or out of time. */
  private async reaches(count: number): Promise<boolean> {
    for (;;) {
      const state = await this.look();
      if (this.accepted >= count) return state !== 'done';
      if (state === 'done' || state === 'stopped' || state === 'cancelled') return false;
      if (this.hasHadEnough()) return false;
      await wait(LOOK_MS);
    }
  }

  private async comesToItsEnd(members: number): Promise<boolean> {
    for (;;) {
      const state = await this.look();
      if (state === 'done') return true;
      if (state === 'stopped' || state === 'cancelled') {
        this.blame(`the run is ${state}, and not done: ${(await this.ledger.field('reason')) ?? ''}`);
        return false;
      }
      if (this.hasHadEnough()) {
        this.blame(
          `the run is not done: ${this.accepted} of ${members} members accepted after ${this.order.minutes} minutes at most`,
        );
        return false;
      }
      await wait(LOOK_MS);
    }
  }

  private hasHadEnough(): boolean {
    if (this.order.signal.aborted) return true;
    if (performance.now() - this.began > this.order.minutes * 60_000) return true;
    if (this.holding.size > 0 || performance.now() - this.progressAt < STUCK_MS) return false;
    this.blame(
      `nothing was accepted for ${STUCK_MS / 1000} s, with nothing wrong any more (${this.accepted} accepted)`,
    );
    return true;
  }

  private async isOver(): Promise<boolean> {
    await this.look();
    return this.accepted >= this.members;
  }

  private async look(): Promise<string> {
    const fields = await this.ledger.fields().catch((): Record<string, string> => ({}));
    const accepted = Number(fields.accepted ?? this.accepted);
    if (accepted < this.accepted && performance.now() > this.forgivenUntil)
      this.blame(`accepted members went from ${this.accepted} back to ${accepted}`);
    if (accepted !== this.accepted) this.progressAt = performance.now();
    this.accepted = accepted;
    return fields.state ?? 'unknown';
  }

  private async account(plan: MemberPlan, follower: Follower): Promise<void> {
    const { environment, run } = this.scene;
    const status = await farm(environment, COMMAND_MS, 'status', run);
    this.order.tell(status.out.trim());
    const results = await farm(environment, COMMAND_MS, 'results', run);
    if (results.code !== 0) this.blame(`results: exit ${results.code}: ${results.err.trim()}`);
    const records = readResults(results.out);
    this.blame(...memberFaults(plan.members, records), ...streamFaults(follower, records));
    const sound = await farm(environment, COMMAND_MS, 'verify-run', run);
    if (sound.code !== 0) this.blame(`verify-run: exit ${sound.code}: ${(sound.out + sound.err).trim().slice(0, 600)}`);
  }

  private async nothingIsLeft(): Promise<void> {
    const { scene } = this;
    const farmId = await scene.farmId();
    const stayed = await scene.leave();
    this.blame(...stayed.map((name) => `told to go, and still there: ${name}`));
    const deaths = scene.troupe.deaths.filter((d) => d.signal !== null || (d.code !== 3 && d.code !== 143));
    this.blame(...deaths.map((d) => `ended by itself: ${d.name} (${d.signal ?? `exit ${d.code}`})`));
    await scene.verifier.down();
    this.blame(...(await leftovers(scene.data, farmId, LEFT_MS, new Set())).map((what) => `left behind: ${what}`));
  }

  private blame(...what: string[]): void {
    if (this.order.signal.aborted) return;
    for (const one of what) {
      this.violations.push(`${one} [seed ${this.order.seed}]`);
      this.order.tell(`VIOLATION ${one} [seed ${this.order.seed}]`);
    }
  }
}

export function printChaos(report: ChaosReport): string {
  const faults = Object.entries(report.faults).map(([kind, n]) => `${kind} ${n}`);
  const leftOut = Object.entries(report.left_out).map(([kind, why]) => `left out: ${kind} (${why})\n`);
  const verdict =
    report.violations.length === 0
      ? 'nothing lost, doubled, wrong or left behind'
      : `${report.violations.length} violations`;
  return [
    `seed ${report.seed}: ${report.members} members, ${report.kills} kills, ${report.seconds} s: ${verdict}\n`,
    `faults: ${faults.join(', ') || 'none'}${report.missed > 0 ? `; ${report.missed} found the run over` : ''}\n`,
    ...leftOut,
    `leases lost ${report.lost_leases}, late answers ${report.late_answers}, processes started ${report.starts}, the trainer's connections ${report.connections}, times it was sent back ${report.rewinds}\n`,
    ...report.violations.map((v) => `VIOLATION ${v}\n`),
    ...(report.kept === null ? [] : [`logs: ${report.kept}/logs\n`]),
  ].join('');
}
