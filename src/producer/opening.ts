// Which groups come next, and their opening: those that refill degenerate ones, then the plan's own in its order.

import { messageOf } from '../shared/errors.ts';
import type { MemberLane } from '../shared/lane.ts';
import type { RunLedger, Tick } from '../shared/ledger/run-ledger.ts';
import type { RunSettings } from '../shared/ledger/run-settings.ts';
import type { PlanEntry } from '../shared/plan/plan.ts';
import type { PlanIndex } from '../shared/plan/plan-index.ts';

/** Groups opened in one script call. */
const OPEN_BATCH = 64;
/** Groups of the plan that a round looks at, for members of a lane that has places. */
const LOOK_AHEAD = 1_024;

export type Ahead = PlanEntry & { group: number };

/** What stands where: of a tick, kept up to date by what is opened. */
type Standing = Pick<Tick, 'next' | 'waiting'>;

export interface OpeningOptions {
  settings: RunSettings;
  /** Of the plan's own; those that refill others are numbered on from there. */
  groups: number;
  groupSize: number;
  plan: Pick<PlanIndex, 'entries'>;
}

export class Opening {
  private readonly ledger: RunLedger;
  private readonly options: OpeningOptions;
  /** Those that wait to be opened: they lie far apart in the plan, and are read once. */
  private spares: ReadonlyMap<number, Ahead> = new Map();

  constructor(ledger: RunLedger, options: OpeningOptions) {
    this.ledger = ledger;
    this.options = options;
  }

  /** How many groups may be opened: as many as stay within the run's own cap, which is its right to ask and no more. */
  reach({ open }: Pick<Tick, 'open'>): number {
    const { groupSize, settings } = this.options;
    if (open >= settings.inFlight) return 0;
    return Math.min(LOOK_AHEAD, Math.max(1, Math.floor((settings.inFlight - open) / groupSize)));
  }

  /** The groups to be opened next. Null where the plan's store does not give them: then the run waits for that, as for any other part. */
  async ahead({ next, waiting }: Standing, count: number): Promise<Ahead[] | null> {
    const { plan, groups } = this.options;
    const called = await this.ledger.spares(Math.min(count, waiting, OPEN_BATCH));
    try {
      const ahead: Ahead[] = [];
      for (const group of called) ahead.push(this.spares.get(group) ?? (await this.spare(group)));
      this.spares = new Map(ahead.map((entry) => [entry.group, entry]));
      const own = await plan.entries(next, Math.min(groups, next + count - ahead.length));
      return [...ahead, ...own.map((entry, i) => ({ ...entry, group: next + i }))];
    } catch (error) {
      await this.ledger.setState('paused', `the plan cannot be read: ${messageOf(error)}`);
      return null;
    }
  }

  /** Opens what comes next until each lane has members for its places, and as many again for the next time. */
  async forPlaces(
    epoch: string,
    tick: Tick,
    places: Record<MemberLane, number>,
    ahead: readonly Ahead[],
  ): Promise<void> {
    const short = { rollout: 0, light: 0 };
    for (const lane of ['rollout', 'light'] as const) {
      const { out, ready } = tick.lanes[lane];
      if (places[lane] > ready) short[lane] = places[lane] - ready + out + places[lane];
    }
    let wanted = 0;
    for (const [i, { lane }] of ahead.entries()) {
      if (short.rollout <= 0 && short.light <= 0) break;
      if (short[lane] > 0) wanted = i + 1;
      short[lane] -= this.options.groupSize;
    }
    for (let from = 0; from < wanted; from += OPEN_BATCH)
      if (!(await this.open(epoch, tick, ahead.slice(from, Math.min(wanted, from + OPEN_BATCH))))) return;
  }

  /** Opens some of those that come next, whoever has places. False where there is none, or it is not ours to open them any more. */
  async openNext(epoch: string, standing: Standing): Promise<boolean> {
    const some = await this.ahead(standing, OPEN_BATCH);
    return some !== null && some.length > 0 && (await this.open(epoch, standing, some));
  }

  private async open(epoch: string, standing: Standing, some: readonly Ahead[]): Promise<boolean> {
    const spares = some.filter(({ group }) => group >= this.options.groups);
    const own = some.slice(spares.length);
    if (spares.length > 0) {
      if ((await this.ledger.openSpares(epoch, spares)) < 0) return false;
      standing.waiting -= spares.length;
    }
    if (own.length > 0) {
      if ((await this.ledger.openGroups(epoch, standing.next, own)) < 0) return false;
      standing.next += own.length;
    }
    return true;
  }

  private async spare(group: number): Promise<Ahead> {
    const [entry] = await this.options.plan.entries(group, group + 1);
    if (entry === undefined) throw new Error(`it has no group ${group}`);
    return { ...entry, group };
  }
}
