// What the ledger's scripts promise, in memory and in plain words: members of one run, who holds them, how groups close. A
// random walk does the same to both and compares every answer.

export type Answer = string;

interface ModelMember {
  stage: 'open' | 'rolling' | 'rolled' | 'verifying' | 'accepted';
  token: string | null;
  worker: string | null;
  leased: boolean;
  begins: number;
  charged: number;
  /** Begun with nothing beside it, and nothing came. */
  alone: boolean;
  /** Deaths of its workers, of one signature: all, and those while it was alone. */
  deaths: { signature: string; all: number; alone: number } | null;
  /** `reward`, or the cause of no result. */
  outcome: number | string | null;
}

interface ModelGroup {
  members: ModelMember[];
  refills: number;
  opened: boolean;
  closed: boolean;
  /** On the run's clock. */
  openedMs: number;
  beganMs: number | null;
}

export interface ModelRules {
  groups: number;
  /** By group, those beyond `groups` too: the one that refills it, should it come out degenerate. */
  spares: (number | null)[];
  size: number;
  atLeast: number | null;
  maxAttempts: number;
  refill: number;
  deadlineMs: number;
  slotWaitMs: number;
}

export interface Closing {
  group: number;
  by: string;
  outcomes: (number | string)[];
}

export class LedgerModel {
  readonly closings: Closing[] = [];
  state: 'running' | 'paused' | 'stopped' | 'cancelled' = 'running';
  clockMs = 0;
  /** The first group of the plan that is not open yet. */
  next = 0;
  late = 0;
  lost = 0;
  /** Groups that degenerate ones have called for, and those of them that are not open yet. */
  readonly called = new Set<number>();
  readonly waiting = new Set<number>();
  private committed = 0;
  private readonly groups: ModelGroup[];
  private readonly rules: ModelRules;

  constructor(rules: ModelRules) {
    this.rules = rules;
    this.groups = rules.spares.map(() => ({
      refills: 0,
      opened: false,
      closed: false,
      openedMs: 0,
      beganMs: null,
      members: Array.from({ length: rules.size }, () => ({
        stage: 'open',
        token: null,
        worker: null,
        leased: false,
        begins: 0,
        charged: 0,
        alone: false,
        deaths: null,
        outcome: null,
      })),
    }));
  }

  get over(): boolean {
    return this.groups.every((g, i) => g.closed || (i >= this.rules.groups && !this.called.has(i)));
  }

  isClosed(g: number): boolean {
    return this.group(g).closed;
  }

  openGroups(count: number): Answer {
    if (this.state !== 'running' && this.state !== 'cancelled') return '-1';
    const opening = this.groups.slice(this.next, this.next + count);
    for (const group of opening) Object.assign(group, { opened: true, openedMs: this.clockMs });
    this.next += opening.length;
    return String(opening.length);
  }

  /** Each once, of those that wait for it. */
  openSpares(groups: readonly number[]): Answer {
    if (this.state !== 'running' && this.state !== 'cancelled') return '-1';
    const opening = groups.filter((g) => this.waiting.delete(g));
    for (const g of opening) Object.assign(this.group(g), { opened: true, openedMs: this.clockMs });
    return String(opening.length);
  }

  /** The next closed groups are in a shard: those whose answers were all worth the same call for others. */
  commit(count: number): void {
    for (const { group, by, outcomes } of this.closings.slice(this.committed, this.committed + count)) {
      const rewards = outcomes.filter((x) => typeof x === 'number');
      const spare = this.rules.spares[group] ?? null;
      if (spare === null || by === 'cancelled' || rewards.length < 2 || new Set(rewards).size > 1) continue;
      this.called.add(spare);
      this.waiting.add(spare);
    }
    this.committed += count;
  }

  /** The run's clock advances while it runs, at most so much at once; what its deadline reached is closed, the earliest first. */
  tick(ms: number, most: number): void {
    if (this.state !== 'running') return;
    this.clockMs += Math.max(0, Math.min(ms, most));
    for (const g of this.byDeadline())
      if (this.deadlineOf(g) <= this.clockMs)
        this.close(g, 'deadline', this.group(g).beganMs === null ? 'not_started' : 'group_deadline');
  }

  cancel(): Answer {
    const before = this.state;
    this.rest();
    this.state = 'cancelled';
    return before;
  }

  /** Of a run that is cancelled: open groups, some at a time. */
  closeOpen(most: number): Answer {
    if (this.state !== 'cancelled') return '0';
    const groups = this.byDeadline().slice(0, most);
    for (const g of groups) this.close(g, 'cancelled', 'cancelled');
    return String(groups.length);
  }

  /** Tells a worker at work how its member stands. */
  beat(g: number, m: number, token: string): Answer {
    const why = this.speaks(g, m, token);
    if (why !== null) return why;
    this.member(g, m).leased = true;
    return this.state === 'stopped' ? 'stopped' : 'ok';
  }

  /** Those whose lease is over are given back; gives who waits for a place, or to be queued again. */
  due(): Set<string> {
    const waiting = new Set<string>();
    if (this.state !== 'running') return waiting;
    for (const [g, group] of this.groups.entries()) {
      if (!group.opened || group.closed) continue;
      for (const [m, member] of group.members.entries()) {
        if (member.leased || member.stage === 'accepted') continue;
        if (member.stage === 'rolling' || member.stage === 'verifying') {
          this.lost++;
          this.giveBack(g, m);
        }
        waiting.add(`${g}-${m}`);
      }
    }
    return waiting;
  }

  /** Open members of open groups, with what the ledger must have of each. */
  get standing(): { id: string; stage: ModelMember['stage']; begun: boolean }[] {
    return [...this.groups.entries()].flatMap(([g, group]) =>
      group.opened && !group.closed
        ? group.members.map((x, m) => ({ id: `${g}-${m}`, stage: x.stage, begun: x.begins > 0 }))
        : [],
    );
  }

  stageOf(g: number, m: number): ModelMember['stage'] {
    return this.member(g, m).stage;
  }

  begin(
    g: number,
    m: number,
    stage: 'rollout' | 'verify',
    worker: string,
    token: string,
    company: { alone: boolean; suspects: boolean },
  ): Answer {
    const member = this.member(g, m);
    if (this.state !== 'running') return this.state;
    if (this.group(g).closed || !this.group(g).opened) return 'closed';
    if (member.stage === 'accepted') return 'accepted';
    if (member.leased) return 'leased';
    const rolled = member.stage === 'rolled' || member.stage === 'verifying';
    if (rolled !== (stage === 'verify')) return member.stage;
    if (member.deaths !== null && !company.suspects) {
      Object.assign(member, { token: null, leased: false, worker, alone: false });
      return 'suspect';
    }
    Object.assign(member, {
      stage: rolled ? 'verifying' : 'rolling',
      token,
      worker,
      leased: true,
      alone: company.alone,
      begins: member.begins + 1,
    });
    this.group(g).beganMs ??= this.clockMs;
    return 'begun';
  }

  accept(g: number, m: number, token: string, outcome: number | string): Answer {
    const why = this.refuses(g, m, token);
    if (why !== null) return why;
    this.settle(g, m, outcome);
    return 'accepted';
  }

  rolled(g: number, m: number, token: string): Answer {
    const why = this.refuses(g, m, token);
    if (why !== null) return why;
    Object.assign(this.member(g, m), { stage: 'rolled', deaths: null });
    this.giveBack(g, m);
    return 'rolled';
  }

  fail(g: number, m: number, token: string, cause: string, charged: boolean): Answer {
    const why = this.refuses(g, m, token);
    if (why !== null) return why;
    const [group, member] = [this.group(g), this.member(g, m)];
    if (charged) {
      member.charged++;
      if (member.charged >= this.rules.maxAttempts || group.refills >= this.rules.refill) {
        this.settle(g, m, cause);
        return 'no_result';
      }
      group.refills++;
    }
    this.giveBack(g, m);
    return 'retry';
  }

  expire(g: number, m: number): void {
    this.member(g, m).leased = false;
  }

  joined(g: number, m: number, token: string): void {
    if (!this.group(g).closed && this.member(g, m).token === token) this.member(g, m).alone = false;
  }

  /** Whose lease is over is given back when the run rests. */
  rest(state: 'paused' | 'stopped' = 'paused'): void {
    this.state = state;
    for (const [g, group] of this.groups.entries())
      for (const [m, member] of group.members.entries())
        if (!group.closed && member.token !== null && !member.leased) this.giveBack(g, m);
  }

  /** Charges nobody. A signature makes suspects; only one that was alone each time is set aside. Gives how many it held. */
  bury(worker: string, signature: string, poison: number): number {
    const held = [...this.groups.entries()].flatMap(([g, group]) =>
      [...group.members.entries()]
        .filter(([, x]) => !group.closed && x.worker === worker)
        .map(([m]) => [g, m] as const),
    );
    for (const [g, m] of held) {
      const member = this.member(g, m);
      if (this.group(g).closed) continue;
      if (member.token !== null && signature !== '') {
        const before = member.deaths?.signature === signature ? member.deaths : { all: 0, alone: 0 };
        member.deaths = { signature, all: before.all + 1, alone: before.alone + (member.alone ? 1 : 0) };
        if (member.deaths.alone >= poison) {
          this.settle(g, m, 'poison');
          continue;
        }
      }
      this.giveBack(g, m);
    }
    return held.length;
  }

  private group(g: number): ModelGroup {
    return this.groups[g] as ModelGroup;
  }

  private member(g: number, m: number): ModelMember {
    return this.group(g).members[m] as ModelMember;
  }

  private refuses(g: number, m: number, token: string): string | null {
    const why = this.speaks(g, m, token);
    if (why !== null) this.late++;
    return why;
  }

  private speaks(g: number, m: number, token: string): string | null {
    if (!this.group(g).closed && this.member(g, m).token === token) return null;
    if (this.state === 'cancelled') return 'cancelled';
    return this.group(g).closed ? 'closed' : 'superseded';
  }

  private deadlineOf(g: number): number {
    const { beganMs, openedMs } = this.group(g);
    return beganMs === null ? openedMs + this.rules.slotWaitMs : beganMs + this.rules.deadlineMs;
  }

  private byDeadline(): number[] {
    const open = [...this.groups.keys()].filter((g) => this.group(g).opened && !this.group(g).closed);
    return open.sort((a, b) => this.deadlineOf(a) - this.deadlineOf(b) || (String(a) < String(b) ? -1 : 1));
  }

  private giveBack(g: number, m: number): void {
    const member = this.member(g, m);
    const stage = member.stage === 'verifying' || member.stage === 'rolled' ? 'rolled' : 'open';
    Object.assign(member, { stage, token: null, worker: null, leased: false, alone: false });
  }

  private settle(g: number, m: number, outcome: number | string): void {
    const group = this.group(g);
    Object.assign(this.member(g, m), {
      stage: 'accepted',
      token: null,
      worker: null,
      leased: false,
      alone: false,
      deaths: null,
      outcome,
    });
    const settled = group.members.filter((x) => x.outcome !== null);
    const completed = settled.filter((x) => typeof x.outcome === 'number').length;
    if (settled.length === group.members.length) this.close(g, 'all');
    else if (this.rules.atLeast !== null && completed >= this.rules.atLeast) this.close(g, 'at_least', 'group_closed');
  }

  private close(g: number, by: string, cause = ''): void {
    const group = this.group(g);
    group.closed = true;
    const outcomes = group.members.map((x) => x.outcome ?? cause);
    this.closings.push({ group: g, by, outcomes });
  }
}
