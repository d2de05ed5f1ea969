// What a worker knows of the runs whose members it gets: settings and store, read once a run. A run that this worker
// must not touch (another key, a store that it cannot open) is refused here, before anything is begun.

import type { Redis } from 'ioredis';
import type { Config } from '../shared/config.ts';
import { fingerprint, type RunSettings, readSettings } from '../shared/ledger/run-settings.ts';
import { runKey } from '../shared/ledger/script.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import type { Store } from '../shared/store/store.ts';
import { Documents } from './documents.ts';

export interface KnownRun {
  settings: RunSettings;
  store: Store;
  documents: Documents;
}

/** `othersMay`: it is this worker that must not; another one might. */
export interface RefusedRun {
  refused: string;
  othersMay: boolean;
}

const KEPT = 64;

export class Runs {
  private readonly known = new Map<string, Promise<KnownRun | RefusedRun>>();
  private readonly redis: Redis;
  private readonly config: Config;
  private readonly anyKey: boolean;

  /** `anyKey`: for one who reads and closes, and asks no verifier. */
  constructor(redis: Redis, config: Config, options: { anyKey: boolean } = { anyKey: false }) {
    this.redis = redis;
    this.config = config;
    this.anyKey = options.anyKey;
  }

  get(run: string): Promise<KnownRun | RefusedRun> {
    let entry = this.known.get(run);
    if (!entry) {
      entry = this.read(run);
      // A failure to read is not remembered: the next job tries again.
      entry.then(
        (found) => 'refused' in found && this.known.delete(run),
        () => this.known.delete(run),
      );
      this.known.set(run, entry);
      if (this.known.size > KEPT) this.known.delete(this.known.keys().next().value as string);
    }
    return entry;
  }

  private async read(run: string): Promise<KnownRun | RefusedRun> {
    const text = await this.redis.hget(`${runKey(run)}:run`, 'settings');
    if (text === null) return { refused: 'the ledger does not know this run', othersMay: false };
    let settings: RunSettings;
    try {
      settings = readSettings(text);
    } catch {
      return { refused: 'its settings are of another version of the farm', othersMay: true };
    }
    if (
      !this.anyKey &&
      settings.keyFingerprint !== null &&
      settings.keyFingerprint !== fingerprint(this.config.ambertraceApiKey)
    ) {
      return {
        refused: 'this worker does not hold the AmberTrace key that the run was submitted with',
        othersMay: true,
      };
    }
    const store = await openStoreAddress(settings.store);
    return { settings, store, documents: new Documents(store) };
  }
}
