// The gateway's side of the interactive lane: samples that it has there, what it is told of them, and what it does when
// it is told nothing: those that Redis forgot are submitted again, and those that no worker is left to take come back.
// Nobody's deadline waits for Redis: that is kept by whoever asks here.

import { randomBytes } from 'node:crypto';
import { messageOf } from '../shared/errors.ts';
import { InteractiveLane, type Told } from '../shared/interactive/lane.ts';
import {
  type AskedEnvironment,
  dumpAsked,
  readOutcome,
  type SampleOutcome,
} from '../shared/interactive/sample-outcome.ts';
import { dumpJson } from '../shared/json/json.ts';
import type { Value } from '../shared/json/value.ts';
import { detailOf } from '../shared/outcome.ts';
import { presentIn } from '../shared/presence.ts';
import { processIdentity } from '../shared/process-identity.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openRedis, type RedisPlace } from '../shared/redis/connect.ts';
import { within } from '../shared/within.ts';

export interface InteractiveOptions {
  redis: Redis;
  place: RedisPlace;
  realm: string;
  /** Whether what no worker takes can be scored somewhere else. */
  elsewhere: boolean;
}

/** What the samples of one request share. */
export class LaneCall {
  readonly id = randomBytes(9).toString('base64url');
  readonly shared: string;
  sent = false;

  constructor(asked: AskedEnvironment) {
    this.shared = dumpAsked(asked);
  }
}

interface Entry {
  id: string;
  call: LaneCall;
  content: string;
  /** On the monotonic clock. */
  until: number;
  state: 'waiting' | 'taken' | 'lost';
  /** Beats for which Redis did not know it. */
  missing: number;
  resolve: (outcome: SampleOutcome | 'nobody') => void;
}

const BEAT_MS = 1_000;
const LISTEN_MS = 5_000;
const LOOK_MS = 1_000;
/** In Redis at once, from this gateway. */
const MOST = { samples: 64, bytes: 32 * 1024 * 1024 };

export class InteractiveDesk {
  /** Whether somebody takes samples. */
  workers = false;
  private readonly options: InteractiveOptions;
  private readonly lane: InteractiveLane;
  private readonly gate = `${processIdentity()}-${randomBytes(6).toString('hex')}`;
  private readonly entries = new Map<string, Entry>();
  private bytes = 0;
  private beat: NodeJS.Timeout | null = null;
  private beating = false;
  private listening: Redis | null = null;
  private readonly withdrawing = new Set<Promise<void>>();
  private closed = false;

  constructor(options: InteractiveOptions) {
    this.options = options;
    this.lane = new InteractiveLane(options.redis, options.realm);
  }

  get hasRoom(): boolean {
    return this.entries.size < MOST.samples && this.bytes < MOST.bytes;
  }

  /** Whether workers are there now; a Redis that does not say has none. */
  async look(): Promise<void> {
    const { redis, realm } = this.options;
    const found = presentIn(redis, realm).then(
      (all) => all.some((one) => (one.slots.interactive ?? 0) > 0),
      () => false,
    );
    this.workers = await within(found, LOOK_MS, false);
  }

  /** Never rejects. `nobody`: it is scored elsewhere. `until` is on the monotonic clock. */
  async play(
    call: LaneCall,
    index: number,
    completion: Value,
    until: number,
    signal: AbortSignal,
  ): Promise<SampleOutcome | 'nobody'> {
    const content = dumpJson(completion, { compact: true });
    const id = `${call.id}.${index}.${randomBytes(3).toString('hex')}`;
    const over = new Promise<SampleOutcome | 'nobody'>((resolve) => {
      this.entries.set(id, { id, call, content, until, state: 'waiting', missing: 0, resolve });
    });
    const entry = this.entries.get(id) as Entry;
    this.bytes += content.length;
    const given = (): void => {
      this.withdraw(call, [id]);
      entry.resolve(lateOutcome(entry.state));
    };
    signal.addEventListener('abort', given, { once: true });
    if (signal.aborted) given();
    else {
      this.start();
      void this.submit(entry).catch((error: unknown) => {
        // Until the next look.
        this.workers = false;
        const detail = detailOf(`the farm’s Redis does not take samples: ${messageOf(error)}`);
        entry.resolve(this.options.elsewhere ? 'nobody' : { status: 'no_result', cause: 'sandbox_start', detail });
        this.withdraw(call, [id]);
      });
    }
    const outcome = await over;
    signal.removeEventListener('abort', given);
    this.entries.delete(id);
    this.bytes -= content.length;
    this.rest();
    return outcome;
  }

  /** Nobody asks for any of its samples any more. */
  end(call: LaneCall): void {
    if (call.sent) this.withdraw(call, [], true);
  }

  private async submit(entry: Entry): Promise<void> {
    const { call, id, content, until } = entry;
    const left = until - performance.now();
    const samples = [{ id, content }];
    const first = !call.sent;
    call.sent = true;
    if (await this.lane.submit(call.id, this.gate, left, first ? call.shared : null, samples)) return;
    await this.lane.submit(call.id, this.gate, left, call.shared, samples);
  }

  private withdraw(call: LaneCall, ids: readonly string[], all = false): void {
    const going = this.lane.withdraw(call.id, ids, all).catch(() => {});
    this.withdrawing.add(going);
    void going.then(() => this.withdrawing.delete(going));
  }

  private start(): void {
    this.beat ??= setInterval(() => void this.tend(), BEAT_MS);
    if (this.listening === null && !this.closed) {
      this.listening = openRedis(this.options.place);
      void this.listen(this.listening);
    }
  }

  private rest(): void {
    if (this.entries.size > 0 || this.beat === null) return;
    clearInterval(this.beat);
    this.beat = null;
  }

  private async listen(listening: Redis): Promise<void> {
    while (this.listening === listening) {
      try {
        for (const told of await this.lane.told(listening, this.gate, LISTEN_MS)) this.hear(told);
      } catch {
        // Reconnected by itself, or closed.
        if (this.listening === listening) await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  private hear(told: Told): void {
    const entry = this.entries.get(told.id);
    if (!entry) return;
    if (told.kind === 'over') entry.resolve(readOutcome(told.outcome));
    else entry.state = told.kind;
  }

  /** Once a second, while there is something to wait for. */
  private async tend(): Promise<void> {
    if (this.beating) return;
    this.beating = true;
    try {
      await this.look();
      const entries = [...this.entries.values()];
      const missing = new Set(
        await this.lane.tend(
          this.gate,
          entries.map((one) => one.id),
        ),
      );
      for (const entry of entries) {
        entry.missing = missing.has(entry.id) ? entry.missing + 1 : 0;
        // At the first time its outcome may be on its way to us.
        if (entry.missing > 1 && this.entries.has(entry.id)) {
          entry.missing = 0;
          entry.state = 'lost';
          await this.submit(entry);
        }
        if (!this.workers && this.options.elsewhere && entry.state !== 'taken') {
          this.withdraw(entry.call, [entry.id]);
          entry.resolve('nobody');
        }
      }
    } catch {
      // Redis is away: deadlines are kept without it.
    } finally {
      this.beating = false;
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const entry of this.entries.values()) {
      this.withdraw(entry.call, [entry.id]);
      entry.resolve(lateOutcome(entry.state));
    }
    await Promise.all([...this.withdrawing]);
    if (this.beat) clearInterval(this.beat);
    this.listening?.disconnect();
    this.listening = null;
  }
}

function lateOutcome(state: Entry['state']): SampleOutcome {
  const late = {
    waiting: { cause: 'not_started', detail: 'no sandbox was free before the deadline' },
    taken: { cause: 'environment_silent', detail: 'the episode was not over by the deadline' },
    lost: { cause: 'sandbox_lost', detail: 'its worker was lost, and no other was done before the deadline' },
  } as const;
  return { status: 'no_result', ...late[state] };
}
