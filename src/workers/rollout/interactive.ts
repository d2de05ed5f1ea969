// The interactive lane's worker side: takes single samples that somebody waits for, in slots that no run can fill, and
// answers through the lane. It has what the lane's lease says it has: a sample that was withdrawn, or given to another,
// is let go; one whose box is lost is given back, for a second try where there is another worker.

import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { messageOf } from '../../shared/errors.ts';
import { InteractiveLane, type TakenSample } from '../../shared/interactive/lane.ts';
import { dumpOutcome, readAsked, type SampleOutcome } from '../../shared/interactive/sample-outcome.ts';
import { parseJson } from '../../shared/json/json.ts';
import { detailOf } from '../../shared/outcome.ts';
import type { Redis } from '../../shared/redis/client.ts';
import { openRedis } from '../../shared/redis/connect.ts';
import { type Box, DEFAULT_LIMITS, type SandboxDriver } from '../../shared/sandbox.ts';
import type { Role, RoleContext } from '../role.ts';
import { type PlayedSample, playSample } from './sample.ts';

/** Renews what it has, and looks whether a ring of the bell was lost. */
const BEAT_MS = 1_000;
/** Before a worker whose engine does not answer takes another: those of others come first. */
const REST_MS = 1_000;

const STOP_MS = 3_000;

export interface InteractiveOptions {
  context: RoleContext;
  driver: SandboxDriver;
  /** Samples at once, now: what is reserved, and what runs leave idle. */
  slots: () => number;
  /** A sample begins to work in this process; gives what ends that. */
  enter: () => Promise<() => void>;
}

interface Held {
  sample: TakenSample;
  controller: AbortController;
}

class LetGo extends Error {
  readonly why: 'late' | 'gone' | 'stop';
  constructor(why: 'late' | 'gone' | 'stop') {
    super(`the sample was let go: ${why}`);
    this.why = why;
  }
}

export class InteractiveWorker implements Role {
  private readonly options: InteractiveOptions;
  private readonly lane: InteractiveLane;
  private readonly subscriber: Redis;
  private readonly held = new Map<string, Held>();
  private readonly working = new Set<Promise<void>>();
  private readonly beat: NodeJS.Timeout;
  private readonly taking: Promise<void>;
  private ending = false;
  private beating = false;
  private rung = false;
  private wake: () => void = () => {};

  constructor(options: InteractiveOptions) {
    this.options = options;
    const { redis, place, realm } = options.context;
    this.lane = new InteractiveLane(redis, realm);
    this.subscriber = openRedis(place);
    this.subscriber.on('message', () => this.ring());
    void this.subscriber.subscribe(this.lane.bell).catch(() => {});
    this.beat = setInterval(() => {
      this.ring();
      void this.renew();
    }, BEAT_MS);
    this.taking = this.takeOn();
  }

  private async takeOn(): Promise<void> {
    while (!this.ending) {
      try {
        if (this.working.size < this.options.slots() && (await this.lane.someWait())) {
          const sample = await this.lane.take(randomBytes(16).toString('hex'));
          if (sample) {
            const work = this.work(sample).finally(() => {
              this.working.delete(work);
              this.ring();
            });
            this.working.add(work);
            continue;
          }
        }
      } catch (error) {
        this.options.context.log.debug({ error: messageOf(error) }, 'interactive lane');
      }
      if (!this.ending) await this.bell();
    }
  }

  /** Until the bell rings, or rang since it was last waited for. */
  private async bell(): Promise<void> {
    if (!this.rung) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    this.rung = false;
  }

  private ring(): void {
    this.rung = true;
    this.wake();
  }

  private async work(sample: TakenSample): Promise<void> {
    const { log } = this.options.context;
    const controller = new AbortController();
    this.held.set(sample.id, { sample, controller });
    const late = setTimeout(() => controller.abort(new LetGo('late')), Math.min(sample.leftMs, 2 ** 31 - 1));
    const began = performance.now();
    const told = await this.score(sample, controller.signal).catch((error: unknown) => messageOf(error));
    clearTimeout(late);
    this.held.delete(sample.id);
    log.info({ sample: sample.id, wall_ms: Math.round(performance.now() - began), outcome: told }, 'sample');
  }

  /** What became of it. */
  private async score(sample: TakenSample, signal: AbortSignal): Promise<string> {
    let played: PlayedSample;
    let leave = (): void => {};
    try {
      leave = await this.options.enter();
      played = await this.play(sample, signal);
    } catch (error) {
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (reason instanceof LetGo) {
        if (reason.why === 'stop') await this.lane.giveBack(sample);
        // Its gateway has answered already; this only ends it in Redis.
        if (reason.why === 'late') await this.lane.settle(sample, dumpOutcome(failed('environment_silent', reason)));
        return reason.why;
      }
      played = { outcome: failed('environment_error', error), signature: null };
    } finally {
      leave();
    }
    const { outcome, signature } = played;
    if (signature === null) await this.lane.settle(sample, dumpOutcome(outcome));
    else await this.lost(sample, signature, dumpOutcome(outcome));
    return outcome.status === 'completed' ? 'completed' : `${outcome.cause}: ${outcome.detail}`;
  }

  private async play(sample: TakenSample, signal: AbortSignal): Promise<PlayedSample> {
    const { driver, context } = this.options;
    const asked = readAsked(sample.shared);
    if (asked === null) throw new Error('an environment that cannot be read');
    const labels = { farm: context.farmId, worker: context.worker, member: sample.id };
    const openBox = (within: AbortSignal): Promise<Box> => driver.open(DEFAULT_LIMITS, labels, within);
    const { content, knownSignature } = sample;
    return await playSample(asked, parseJson(content), { openBox, signal, knownSignature });
  }

  private async lost(sample: TakenSample, signature: string, outcome: string): Promise<void> {
    await this.lane.again(sample, signature, outcome);
    // The slot stays taken meanwhile.
    if (!(await this.options.driver.answers()) && !this.ending) await wait(REST_MS);
  }

  private async renew(): Promise<void> {
    if (this.beating || this.held.size === 0) return;
    this.beating = true;
    try {
      const held = [...this.held.values()];
      const gone = new Set(await this.lane.beat(held.map((one) => one.sample)));
      for (const { sample, controller } of held) if (gone.has(sample.id)) controller.abort(new LetGo('gone'));
    } catch {
      // Redis is away: the lease tells, or the next beat.
    } finally {
      this.beating = false;
    }
  }

  async drain(): Promise<void> {
    this.ending = true;
    this.ring();
    await this.taking;
    await Promise.all([...this.working]);
    this.close();
  }

  async stop(): Promise<void> {
    this.ending = true;
    this.ring();
    for (const { controller } of this.held.values()) controller.abort(new LetGo('stop'));
    // A Redis that is away is not waited for: leases end by themselves.
    await Promise.race([this.drain(), wait(STOP_MS, undefined, { ref: false })]);
    this.close();
  }

  private close(): void {
    clearInterval(this.beat);
    this.subscriber.disconnect();
  }
}

function failed(cause: 'environment_silent' | 'environment_error', error: unknown): SampleOutcome {
  return { status: 'no_result', cause, detail: detailOf(messageOf(error)) };
}
