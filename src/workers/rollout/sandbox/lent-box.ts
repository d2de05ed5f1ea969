// A box of the pool as an episode has it. Given back when the episode closes it, with whether anything befell it that a
// reset should not be trusted with.

import {
  type Box,
  BoxLost,
  type Check,
  type Command,
  type CommandResult,
  type Grade,
  type Listing,
} from '../../../shared/sandbox.ts';

export class LentBox implements Box {
  readonly imageId: string;
  readonly runnerHash: string | null;
  readonly isolation: Box['isolation'];
  readonly startMs: number;
  readonly #box: Box;
  readonly #giveBack: (sound: boolean) => Promise<void>;
  /** Nothing was written or run since it was made or proven to be as new. */
  #pristine = true;
  #sound = true;
  #atWork = 0;
  #closing: Promise<void> | null = null;

  constructor(box: Box, terms: { recycled: boolean; startMs: number; giveBack: (sound: boolean) => Promise<void> }) {
    this.#box = box;
    this.#giveBack = terms.giveBack;
    this.imageId = box.imageId;
    this.runnerHash = box.runnerHash;
    this.isolation = terms.recycled && box.isolation === 'fresh' ? 'recycled' : box.isolation;
    this.startMs = terms.startMs;
  }

  get well(): boolean {
    return this.#closing === null && this.#box.well;
  }

  async write(files: ReadonlyMap<string, Uint8Array>): ReturnType<Box['write']> {
    const written = await this.#use(() => this.#box.write(files));
    if (!written.ok && written.reason === 'escape') this.#sound = false;
    return written;
  }

  run(command: Command): Promise<CommandResult> {
    return this.#use(() => this.#box.run(command));
  }

  async grade(check: Check): Promise<Grade> {
    const grade = await this.#use(() => this.#box.grade(check, this.isolation === 'recycled'));
    if (grade.status === 'not_laid' && grade.reason === 'escape') this.#sound = false;
    return grade;
  }

  read(caps: { maxBytes: number; maxEntries: number }): Promise<Listing> {
    return this.#use(() => this.#box.read(caps));
  }

  async reset(): Promise<void> {
    if (this.#pristine && this.#closing === null && this.#box.well) return;
    await this.#use(() => this.#box.reset());
    this.#pristine = true;
  }

  close(): Promise<void> {
    // What is still at work must end: no reset would wait for it.
    this.#closing ??= this.#giveBack(this.#sound && this.#atWork === 0 && this.#box.well);
    return this.#closing;
  }

  async #use<T>(work: () => Promise<T>): Promise<T> {
    this.#whileOpen();
    this.#pristine = false;
    this.#atWork += 1;
    try {
      const result = await work();
      // what came of it may be the closing's doing
      this.#whileOpen();
      return result;
    } catch (error) {
      this.#sound = false;
      throw error;
    } finally {
      this.#atWork -= 1;
    }
  }

  #whileOpen(): void {
    if (this.#closing !== null) throw new BoxLost('run', 'engine', 'closed', 'the box is closed');
  }
}
