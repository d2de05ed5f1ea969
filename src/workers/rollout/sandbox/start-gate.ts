// The gate through which every start of a box goes: how many start at once and how much memory all boxes take together,
// apart from how many run. Whoever decides (this process alone, or all on one engine through Redis) is asked for the
// first in the line only; who has an episode waiting goes before who makes boxes ahead.

import type { ClaimAnswer, Held, PermitBounds } from '../../../shared/permits/engine-permits.ts';
import { BoxLost } from '../../../shared/sandbox.ts';
import { within } from '../../../shared/within.ts';

export interface Arbiter {
  bounds: PermitBounds;
  claim(held: Held, wantMb: number | null): Promise<ClaimAnswer>;
  leave(): Promise<void>;
  /** Asks again after this when refused; null: only what happens here can change the answer. */
  pollMs: number | null;
}

/** Held from the start of a box to its end. */
export interface Pass {
  /** The box runs or will never: it counts as starting no more. */
  started(): void;
  /** The box is gone: its memory is free. */
  gone(): void;
}

interface Waiting {
  memoryMb: number;
  urgent: () => boolean;
  enter(pass: Pass): void;
}

const BEAT_MS = 5_000;
/** For one answer of the arbiter. */
const CLAIM_MS = 2_000;

export class StartGate {
  /** Called when boxes that wait for work keep others from starting. */
  onPressed: () => void = () => {};
  private readonly arbiter: Arbiter;
  private readonly line: Waiting[] = [];
  private readonly held: Held = { starting: 0, memoryMb: 0 };
  private readonly beat: NodeJS.Timeout;
  private running: Promise<void> | null = null;
  /** What is held has changed since it was told. */
  private changed = false;
  private wake: () => void = () => {};
  private closed = false;

  constructor(arbiter: Arbiter) {
    this.arbiter = arbiter;
    this.beat = setInterval(() => this.kick(), BEAT_MS);
    this.beat.unref();
  }

  /** Waits for leave to start a box. Throws the signal's reason, or BoxLost for a box that can never fit. */
  enter(memoryMb: number, urgent: () => boolean, signal: AbortSignal): Promise<Pass> {
    signal.throwIfAborted();
    if (memoryMb > this.arbiter.bounds.memoryMb)
      throw new BoxLost(
        'start',
        'engine',
        'start:memory',
        `a box of ${memoryMb} MB does not fit into the ${this.arbiter.bounds.memoryMb} MB that boxes may take on this engine`,
      );
    return new Promise<Pass>((resolve, reject) => {
      const waiting: Waiting = {
        memoryMb,
        urgent,
        enter: (pass) => {
          signal.removeEventListener('abort', abort);
          resolve(pass);
        },
      };
      const abort = (): void => {
        const at = this.line.indexOf(waiting);
        if (at >= 0) this.line.splice(at, 1);
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort, { once: true });
      this.line.push(waiting);
      this.kick();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.beat);
    this.wake();
    await this.running;
    await within(this.arbiter.leave(), CLAIM_MS, null).catch(() => {});
  }

  private kick(): void {
    this.changed = true;
    this.wake();
    if (this.closed) return;
    this.running ??= this.serve().finally(() => {
      this.running = null;
      if (this.changed && !this.closed) this.kick();
    });
  }

  private async serve(): Promise<void> {
    while (!this.closed && (this.changed || this.line.length > 0)) {
      this.changed = false;
      const first = this.line.find((one) => one.urgent()) ?? this.line[0] ?? null;
      // Without an answer nothing is started; the wait has its own deadline.
      const answer = await within(this.arbiter.claim(this.held, first?.memoryMb ?? null), CLAIM_MS, null).catch(
        () => null,
      );
      if (answer?.pressed) this.onPressed();
      if (answer?.granted && first !== null) this.admit(first);
      else if (first !== null && !this.changed) await this.change();
    }
  }

  private admit(first: Waiting): void {
    const at = this.line.indexOf(first);
    // It was called off meanwhile: what was granted is given back with the next claim.
    if (at < 0) {
      this.changed = true;
      return;
    }
    this.line.splice(at, 1);
    this.held.starting += 1;
    this.held.memoryMb += first.memoryMb;
    let [starting, there] = [true, true];
    const started = (): void => {
      if (!starting) return;
      starting = false;
      this.held.starting -= 1;
      this.kick();
    };
    first.enter({
      started,
      gone: () => {
        started();
        if (!there) return;
        there = false;
        this.held.memoryMb -= first.memoryMb;
        this.kick();
      },
    });
  }

  private change(): Promise<void> {
    return new Promise((resolve) => {
      const { pollMs } = this.arbiter;
      const timer = pollMs === null ? undefined : setTimeout(resolve, pollMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** For one process alone: the `rollout` command, a gateway's own boxes. */
export function localArbiter(bounds: PermitBounds): Arbiter {
  return {
    bounds,
    pollMs: null,
    claim: async (held, wantMb) => {
      const want = wantMb ?? 0;
      const fits = held.memoryMb + want <= bounds.memoryMb;
      return { granted: want > 0 && fits && held.starting < bounds.startsAtOnce, pressed: !fits };
    },
    leave: async () => {},
  };
}
