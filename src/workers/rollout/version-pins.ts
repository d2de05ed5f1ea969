// Keeps a worker from runs that are graded with another image or another grader than it has: after an upgrade the old runs are
// the old workers', side by side with the new ones. Where no worker is left that could, the run rests and says why.

import { RunLedger } from '../../shared/ledger/run-ledger.ts';
import type { RunSettings } from '../../shared/ledger/run-settings.ts';
import { fixVersions, sayRefused, type Versions } from '../../shared/ledger/versions.ts';
import { presentIn } from '../../shared/presence.ts';
import type { Redis } from '../../shared/redis/client.ts';
import type { SandboxDriver } from '../../shared/sandbox.ts';

const KEPT = 64;
/** Members that are not for this worker come by again and again: the run is looked at so often. */
const TELL_MS = 1_000;
/** An engine that cannot say is one that fails: the attempt finds out, and knows what to do. */
const UNKNOWN: unique symbol = Symbol('unknown');
/** Why not; null: it may. */
type Found = string | null | typeof UNKNOWN;

export interface PinnedWorker {
  redis: Redis;
  realm: string;
  worker: string;
}

export class VersionPins {
  readonly #at: PinnedWorker;
  readonly #driver: Pick<SandboxDriver, 'prepare'>;
  #toldAt = Number.NEGATIVE_INFINITY;
  readonly #known = new Map<string, Promise<Found>>();

  constructor(at: PinnedWorker, driver: Pick<SandboxDriver, 'prepare'>) {
    this.#at = at;
    this.#driver = driver;
  }

  /** Why this worker has to leave the run's boxed members alone; null if it has not. */
  async refusal(
    run: string,
    { sandbox, incarnation }: Pick<RunSettings, 'sandbox' | 'incarnation'>,
  ): Promise<string | null> {
    const key = `${run} ${incarnation}`;
    let known = this.#known.get(key);
    if (known === undefined) {
      known = this.#compare(run, sandbox);
      // What could not be found out is asked again.
      known.then(
        (why) => why === UNKNOWN && this.#known.delete(key),
        () => this.#known.delete(key),
      );
      this.#known.set(key, known);
      if (this.#known.size > KEPT) this.#known.delete(this.#known.keys().next().value as string);
    }
    const why = await known;
    if (why === UNKNOWN) return null;
    if (why !== null && performance.now() - this.#toldAt > TELL_MS) {
      this.#toldAt = performance.now();
      await this.#restIfNobodyCan(run, why);
    }
    return why;
  }

  async #compare(run: string, { image, runtime }: RunSettings['sandbox']): Promise<Found> {
    const prepared = await this.#driver.prepare(image, runtime).catch(() => null);
    if (prepared === null) return UNKNOWN;
    const { imageId, runnerHash } = prepared;
    const mine: Versions = { image: imageId, grader: runnerHash ?? 'none' };
    const fixed = await fixVersions(this.#at.redis, run, mine);
    if (fixed.image !== mine.image)
      return `it was begun with the image ${image} ${short(fixed.image)}, and here that is ${short(mine.image)}`;
    if (fixed.grader !== mine.grader) return `it was begun with the grader ${fixed.grader}, and here is ${mine.grader}`;
    return null;
  }

  async #restIfNobodyCan(run: string, why: string): Promise<void> {
    const { redis, realm, worker } = this.#at;
    const refused = await sayRefused(redis, run, worker);
    const others = (await presentIn(redis, realm)).filter((one) => one.role === 'rollout' && one.worker !== worker);
    if (others.every((one) => refused.has(one.worker)))
      await new RunLedger(redis, run).setState(
        'paused',
        `no worker here may grade this run: ${why}; start one of that version`,
      );
  }
}

function short(id: string): string {
  return id.replace('sha256:', '').slice(0, 12);
}
