// Completions scored in sandboxes: each is one single-step episode in a box of its own. They go to the rollout workers
// through the interactive lane; where no worker is there, to boxes of this process, if it may have some. Requests take
// turns, sample by sample, so that a small one is not behind a large one. What is not over by the deadline has no result.

import type { AskedEnvironment, SampleOutcome } from '../shared/interactive/sample-outcome.ts';
import type { Value } from '../shared/json/value.ts';
import { type InteractiveDesk, LaneCall } from './interactive-desk.ts';
import { linked } from './linked.ts';
import { noResult, type Outcome } from './outcome.ts';
import type { OwnBoxes } from './own-boxes.ts';
import type { Patience } from './score.ts';

interface Request {
  asked: AskedEnvironment;
  call: LaneCall;
  completions: readonly Value[];
  outcomes: (Outcome | undefined)[];
  next: number;
  /** Came back from the lane. */
  back: number[];
  left: number;
  inLane: Set<Promise<void>>;
  until: number;
  signal: AbortSignal;
  done: () => void;
}

const LOOK_MS = 1_000;

export class Episodes {
  private readonly lane: InteractiveDesk | null;
  private readonly own: OwnBoxes | null;
  /** Those with samples that are nowhere yet, in turn. */
  private line: Request[] = [];
  private looking: NodeJS.Timeout | null = null;

  constructor(places: { lane: InteractiveDesk | null; own: OwnBoxes | null }) {
    this.lane = places.lane;
    this.own = places.own;
  }

  /** Samples that wait for a slot or for a worker. */
  get waiting(): number {
    return this.line.reduce((sum, one) => sum + pending(one), 0);
  }

  /** One outcome a completion, in order; by the deadline. */
  async score(asked: AskedEnvironment, completions: readonly Value[], patience: Patience): Promise<Outcome[]> {
    const { until } = patience;
    const { signal, release } = linked([patience.signal], until - performance.now());
    const request: Request = {
      ...{ asked, call: new LaneCall(asked), completions, until, signal },
      ...{ outcomes: [], next: 0, back: [], left: completions.length, inLane: new Set(), done: () => {} },
    };
    const over = new Promise<void>((resolve) => {
      request.done = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted || completions.length === 0) resolve();
    });
    void this.enter(request);
    await over;
    release();
    this.leave(request);
    // What is in the lane says at once what it was waiting for.
    await Promise.all([...request.inLane]);
    this.lane?.end(request.call);
    return completions.map((_, i) => request.outcomes[i] ?? noResult('not_started', this.why()));
  }

  private async enter(request: Request): Promise<void> {
    await this.lane?.look();
    if (request.signal.aborted || request.left === 0) return;
    this.line.push(request);
    this.looking ??= setInterval(() => void this.lookAgain(), LOOK_MS);
    this.pump();
  }

  /** Workers come and go. */
  private async lookAgain(): Promise<void> {
    await this.lane?.look();
    this.pump();
  }

  private leave(request: Request): void {
    this.line = this.line.filter((one) => one !== request);
    if (this.line.length > 0 || this.looking === null) return;
    clearInterval(this.looking);
    this.looking = null;
  }

  private pump(): void {
    for (;;) {
      const place = this.place();
      const request = place === null ? undefined : this.line.shift();
      if (!request) return;
      const index = request.back.shift() ?? request.next++;
      if (pending(request) > 0) this.line.push(request);
      if (place === 'lane') this.toLane(request, index);
      else this.toOwn(request, index);
    }
  }

  /** Where the next sample can go now. */
  private place(): 'lane' | 'own' | null {
    if (this.lane?.workers) return this.lane.hasRoom ? 'lane' : null;
    return this.own?.hasRoom ? 'own' : null;
  }

  private toLane(request: Request, index: number): void {
    const { call, completions, until, signal } = request;
    const playing = (this.lane as InteractiveDesk)
      .play(call, index, completions[index] as Value, until, signal)
      .then((outcome) => {
        request.inLane.delete(playing);
        if (outcome !== 'nobody') this.settle(request, index, outcome);
        else if (!signal.aborted) {
          request.back.push(index);
          if (!this.line.includes(request)) this.line.push(request);
        }
        this.pump();
      });
    request.inLane.add(playing);
  }

  private toOwn(request: Request, index: number): void {
    const { asked, completions, signal } = request;
    // Until it is known better: the slot is held until the box is gone, the answer waits only for the deadline.
    request.outcomes[index] = noResult('environment_silent', 'the episode was not over by the deadline');
    void (this.own as OwnBoxes)
      .play(asked, completions[index] as Value, signal, () => this.pump())
      .then((outcome) => this.settle(request, index, outcome));
  }

  private settle(request: Request, index: number, outcome: SampleOutcome): void {
    request.outcomes[index] = outcomeOf(outcome);
    if (--request.left === 0) request.done();
  }

  private why(): string {
    if (this.lane && !this.lane.workers && !this.own) return 'no rollout worker is there';
    return 'no sandbox was free before the deadline';
  }

  /** Waits until every box of this process is gone. */
  async close(): Promise<void> {
    if (this.looking) clearInterval(this.looking);
    this.looking = null;
    await Promise.all([this.lane?.close(), this.own?.close()]);
  }
}

function pending(request: Request): number {
  return request.back.length + request.completions.length - request.next;
}

function outcomeOf(outcome: SampleOutcome): Outcome {
  if (outcome.status === 'no_result') return outcome;
  const { status, reward, steps, diagnostics } = outcome;
  const more = new Map<string, Value>([
    ['components', new Map([['env', reward]])],
    ['steps', BigInt(steps)],
    ['diagnostics', [...diagnostics]],
  ]);
  return { status, reward, more };
}
