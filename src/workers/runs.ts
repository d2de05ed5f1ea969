// What a worker knows of the runs whose members it gets: settings and store, read once a run. A run that this worker
// must not touch (another key, a store that it cannot open) is refused here, before anything is begun.

import type { Config } from '../shared/config.ts';
import { LEDGER_VERSION } from '../shared/ledger/ledger-version.ts';
import { fingerprint, type RunSettings, readSettings } from '../shared/ledger/run-settings.ts';
import { runKey } from '../shared/ledger/script.ts';
import type { Log } from '../shared/log.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openStoreAddress } from '../shared/store/open.ts';
import type { Store } from '../shared/store/store.ts';
import { Documents } from './documents.ts';
import { watchedStore } from './store-watch.ts';

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
  private readonly log: Log;
  private readonly anyKey: boolean;

  /** `anyKey`: for one who reads and closes, and asks no verifier. */
  constructor(redis: Redis, config: Config, log: Log, options: { anyKey: boolean } = { anyKey: false }) {
    this.redis = redis;
    this.config = config;
    this.log = log;
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
    const [state, version, text] = await this.redis.hmget(`${runKey(run)}:run`, 'state', 'version', 'settings');
    if (!text) return { refused: 'the ledger does not know this run', othersMay: false };
    if (state && version !== LEDGER_VERSION)
      return { refused: `its ledger has layout ${version ?? '1'}, another version’s`, othersMay: true };
    let settings: RunSettings;
    try {
      settings = readSettings(text);
    } catch {
      return { refused: 'its settings are another version’s', othersMay: true };
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
    const store = watchedStore(await openStoreAddress(settings.store), run, this.redis, this.log);
    return { settings, store, documents: new Documents(store) };
  }
}
