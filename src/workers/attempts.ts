// The attempts at work in this process: their leases are renewed every second on monotonic time, and each hears of it
// when it may not speak any more, so that nobody goes on working for a group that is closed.

import type { MemberLane } from '../shared/lane.ts';
import { type Attempt, BEAT_MS, type MemberLedger, type Standing } from '../shared/ledger/member-ledger.ts';
import { Ending } from './ending.ts';

/** Why an attempt at work was told to end. `stop`: this process goes away, at no cost to the member. */
export type EndReason = Exclude<Standing, 'ok'> | 'stop';

export class AttemptEnded extends Error {
  readonly reason: EndReason;
  constructor(reason: EndReason) {
    super(`the attempt was told to end: ${reason}`);
    this.reason = reason;
  }
}

export interface Running {
  readonly attempt: Attempt;
  readonly ending: Ending;
  readonly signal: AbortSignal;
  /** What it does now, for `top`: carried by the next heartbeat. */
  phase: string;
  readonly lane: MemberLane;
  /** Gives its slot to the next one, where nothing but an answer is waited for any more. */
  leave: () => void;
  /** What its slot waits for when the attempt is over; never rejects. */
  after: Promise<void> | null;
}

export class Attempts {
  private readonly running = new Map<string, Running>();
  private readonly waiting: (() => void)[] = [];
  private readonly ledger: MemberLedger;
  private readonly timer: NodeJS.Timeout;

  constructor(ledger: MemberLedger) {
    this.ledger = ledger;
    this.timer = setInterval(() => void this.beat(), BEAT_MS);
  }

  start(attempt: Attempt, lane: MemberLane, phase: string): Running {
    const ending = new Ending();
    const entry = { attempt, ending, signal: ending.signal, phase, lane, leave: () => {}, after: null };
    this.running.set(attempt.token, entry);
    return entry;
  }

  end(running: Running): void {
    this.running.delete(running.attempt.token);
    if (this.running.size === 0) for (const resolve of this.waiting.splice(0)) resolve();
  }

  /** Resolves when nothing is at work. */
  async idle(): Promise<void> {
    if (this.running.size === 0) return;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Tells every attempt to end now. */
  abortAll(): void {
    for (const entry of this.running.values()) entry.ending.end(new AttemptEnded('stop'));
  }

  close(): void {
    clearInterval(this.timer);
  }

  private async beat(): Promise<void> {
    const byRun = new Map<string, Running[]>();
    for (const entry of this.running.values()) {
      const list = byRun.get(entry.attempt.run);
      if (list) list.push(entry);
      else byRun.set(entry.attempt.run, [entry]);
    }
    for (const [run, entries] of byRun) {
      try {
        const standings = await this.ledger.beat(
          run,
          entries.map((e) => ({
            group: e.attempt.group,
            member: e.attempt.member,
            token: e.attempt.token,
            phase: e.phase,
          })),
        );
        entries.forEach((entry, i) => {
          const standing = standings[i];
          if (standing !== undefined && standing !== 'ok') entry.ending.end(new AttemptEnded(standing));
        });
      } catch {
        // Redis is away: the work goes on, and the token decides whether its answer counts.
      }
    }
  }
}
