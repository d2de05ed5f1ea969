// What a driver does when Redis comes back as another server: the run rests until its ledger was compared with the store; a
// ledger that forgot the run is opened again, as the driver found it; a lease of the past is not taken for another driver.

import { messageOf } from '../shared/errors.ts';
import { realmOf, rememberRun } from '../shared/ledger/known-runs.ts';
import { reconcile } from '../shared/ledger/reconcile.ts';
import { DRIVER_LEASE_MS, type RunLedger } from '../shared/ledger/run-ledger.ts';
import { identityOf, type RunSettings } from '../shared/ledger/run-settings.ts';
import type { Log } from '../shared/log.ts';
import { isKnownDead } from '../shared/process-identity.ts';
import type { Redis } from '../shared/redis/client.ts';
import { openStoreAddress } from '../shared/store/open.ts';

/** How often it is asked whether Redis is still the same server; at once after each reconnection. */
const LOOK_MS = 1_000;
/** A ledger that came back may name a driver of the past: its lease is over by then. */
const PREDECESSOR_MS = DRIVER_LEASE_MS + 2_000;
const REST_MS = 1_000;

export interface ComebackOptions {
  redis: Redis;
  settings: RunSettings;
  log: Log;
}

export class Comeback {
  /** A driver that is known to be dead, of a ledger that came back from the past. */
  predecessor = '';
  private readonly ledger: RunLedger;
  private readonly options: ComebackOptions;
  private readonly connected: () => void;
  private opening: { fields: Record<string, string>; realm: string | null } | null = null;
  private lookedAt = Number.NEGATIVE_INFINITY;
  private connectedAt = Number.NEGATIVE_INFINITY;
  private changedAt: number | null = null;
  private triedAt = Number.NEGATIVE_INFINITY;

  constructor(ledger: RunLedger, options: ComebackOptions) {
    this.ledger = ledger;
    this.options = options;
    this.connected = () => {
      this.connectedAt = performance.now();
      this.lookedAt = Number.NEGATIVE_INFINITY;
    };
    options.redis.on('ready', this.connected);
  }

  close(): void {
    this.options.redis.off('ready', this.connected);
  }

  /** Before anything else: for a Redis that forgets the run. */
  async remember(): Promise<void> {
    if (this.opening !== null) return;
    const fields = await this.ledger.opening();
    if (fields !== null) this.opening = { fields, realm: await realmOf(this.options.redis, this.ledger.run) };
  }

  /** Whether the server is to be looked at now. */
  look(): boolean {
    if (performance.now() - this.lookedAt < LOOK_MS) return false;
    this.lookedAt = performance.now();
    return true;
  }

  /** The lease is `owner`'s ('': nobody knows the run). True if that may be the past: it is asked for again. */
  async mayBePast(owner: string): Promise<boolean> {
    if (owner === '') return await this.openAgain();
    if (isKnownDead(owner)) this.predecessor = owner;
    else return performance.now() - this.connectedAt < PREDECESSOR_MS;
    return true;
  }

  private async openAgain(): Promise<boolean> {
    if (this.opening === null) return false;
    const { fields, realm } = this.opening;
    this.options.log.warn({ run: this.ledger.run }, 'Redis has forgotten the run: it is opened again');
    await this.ledger.open(fields);
    if (realm !== null) await rememberRun(this.options.redis, this.ledger.run, realm);
    // Not compared with the store: the next look finds that, also if this process is gone by then.
    await this.ledger.setField('server', '');
    this.lookedAt = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** True once the ledger follows the store. A store that does not answer is waited for like any other part: for `paused_s`. */
  async compare(): Promise<boolean> {
    const { settings, log } = this.options;
    const now = performance.now();
    this.changedAt ??= now;
    const since = this.changedAt;
    this.lookedAt = Number.NEGATIVE_INFINITY;
    if (now - this.triedAt < REST_MS) return false;
    this.triedAt = now;
    let why = 'Redis changed again meanwhile';
    try {
      const store = await openStoreAddress(settings.store);
      try {
        if (await reconcile(this.ledger, store, identityOf(this.ledger.run, settings), log)) {
          this.changedAt = null;
          this.triedAt = Number.NEGATIVE_INFINITY;
          return true;
        }
      } finally {
        await store.close();
      }
    } catch (error) {
      why = messageOf(error);
    }
    const reason = `Redis came back as another server, and its ledger could not be compared with the store: ${why}`;
    log.warn({ run: this.ledger.run, error: why }, 'the ledger could not be compared with the store');
    if (now - since > settings.pausedS * 1000) await this.ledger.setState('stopped', reason, '3');
    else await this.ledger.setField('reason', reason);
    return false;
  }
}
