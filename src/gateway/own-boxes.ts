// Samples scored in boxes that this process opens itself, where no rollout worker is there to take them: a bounded
// number at once. A box that is lost is tried once more; the same death again is the action's own doing. The engine is
// met only when a box is first asked for.

import { FarmError, messageOf } from '../shared/errors.ts';
import type { AskedEnvironment, SampleOutcome } from '../shared/interactive/sample-outcome.ts';
import type { Value } from '../shared/json/value.ts';
import { detailOf } from '../shared/outcome.ts';
import { type Box, DEFAULT_LIMITS, type SandboxDriver } from '../shared/sandbox.ts';
import { playSample } from '../workers/rollout/sample.ts';

export interface OwnBoxesOptions {
  openDriver: () => SandboxDriver;
  /** Boxes at once. */
  slots: number;
  /** On the boxes' labels. */
  worker: string;
}

export class OwnBoxes {
  private readonly options: OwnBoxesOptions;
  private driver: SandboxDriver | null = null;
  private prepared: Promise<unknown> | null = null;
  private readonly playing = new Set<Promise<unknown>>();

  constructor(options: OwnBoxesOptions) {
    this.options = options;
  }

  /** A slot is taken until its box is gone, also when nobody waits any more. */
  get hasRoom(): boolean {
    return this.playing.size < this.options.slots;
  }

  /** Never rejects. `over` is called when the slot is free again. */
  async play(
    asked: AskedEnvironment,
    completion: Value,
    signal: AbortSignal,
    over: () => void,
  ): Promise<SampleOutcome> {
    const playing = this.twice(asked, completion, signal).catch((error: unknown): SampleOutcome => {
      if (signal.aborted)
        return { status: 'no_result', cause: 'environment_silent', detail: 'the episode was not over by the deadline' };
      const detail = error instanceof FarmError ? error.message : messageOf(error);
      return { status: 'no_result', cause: 'sandbox_start', detail: detailOf(detail) };
    });
    this.playing.add(playing);
    const outcome = await playing;
    this.playing.delete(playing);
    over();
    return outcome;
  }

  private async twice(asked: AskedEnvironment, completion: Value, signal: AbortSignal): Promise<SampleOutcome> {
    const openBox = (within: AbortSignal): Promise<Box> => this.openBox(within);
    const first = await playSample(asked, completion, { openBox, signal, knownSignature: null });
    if (first.signature === null) return first.outcome;
    return (await playSample(asked, completion, { openBox, signal, knownSignature: first.signature })).outcome;
  }

  private async openBox(signal: AbortSignal): Promise<Box> {
    this.driver ??= this.options.openDriver();
    const { driver } = this;
    this.prepared ??= driver.prepare(DEFAULT_LIMITS.image);
    try {
      await this.prepared;
    } catch (error) {
      // The engine may be there the next time.
      this.prepared = null;
      throw error;
    }
    // No farm's label: boxes of a gateway end with its channel, and no worker of the farm may sweep them before.
    return await driver.open(DEFAULT_LIMITS, { farm: 'gateway', worker: this.options.worker }, signal);
  }

  /** Waits until every box is gone. */
  async close(): Promise<void> {
    await Promise.all([...this.playing]);
    await this.driver?.close();
  }
}
