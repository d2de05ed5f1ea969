// The parts of a farm in this process: Redis, a folder store, a driver and whatever roles a test starts. What they log
// is kept as it was before any redaction.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pino } from 'pino';
import { Driver, type DriverEnd } from '../../src/producer/driver.ts';
import { type OpenedRun, openRun } from '../../src/producer/open-run.ts';
import { type Config, readConfig } from '../../src/shared/config.ts';
import { Fleet } from '../../src/shared/fleet/fleet.ts';
import type { Slots } from '../../src/shared/lane.ts';
import { wantedKey } from '../../src/shared/ledger/run-settings.ts';
import { type RunStatus, readStatus } from '../../src/shared/ledger/run-status.ts';
import { MemberQueue } from '../../src/shared/queue.ts';
import { openStoreAddress } from '../../src/shared/store/open.ts';
import type { Store } from '../../src/shared/store/store.ts';
import type { RoleContext } from '../../src/workers/role.ts';
import { startRedis, type TestRedis } from './redis-server.ts';
import { readRunSpec } from './spec.ts';

export interface LogLine {
  msg?: string;
  [field: string]: unknown;
}

export interface DrivenRun extends OpenedRun {
  run: string;
  driver: Driver;
  end: Promise<DriverEnd>;
  status(): Promise<RunStatus>;
}

function slotsOf(role: string, at: number): Slots {
  if (role === 'collect') return {};
  return role === 'verify' ? { verify: at } : { rollout: at, light: at };
}

export class FarmParts {
  readonly server: TestRedis;
  readonly folder: string;
  readonly config: Config;
  readonly store: Store;
  readonly lines: LogLine[] = [];
  private readonly log;
  private readonly closing: (() => unknown)[] = [];
  private workers = 0;
  private runs = 0;

  static async start(environment: Record<string, string> = {}, ...redis: string[]): Promise<FarmParts> {
    const folder = mkdtempSync(path.join(tmpdir(), 'farm-test-parts-'));
    const config = readConfig({ FARM_DATA: folder, ...environment });
    return new FarmParts(await startRedis(...redis), folder, config, await openStoreAddress(config.store));
  }

  private constructor(server: TestRedis, folder: string, config: Config, store: Store) {
    this.server = server;
    this.folder = folder;
    this.config = config;
    this.store = store;
    const write = (line: string): void => void this.lines.push(JSON.parse(line) as LogLine);
    this.log = pino({ level: 'debug', base: null }, { write });
  }

  /** What a role needs, in the realm of one run or of all. */
  seat(role: string, realm: string, concurrency = 4, slots: Slots = slotsOf(role, concurrency)): RoleContext {
    const worker = `${role}-${++this.workers}`;
    const { config, log } = this;
    const { redis, place } = this.server;
    return { config, redis, place, farmId: 'test-farm', realm, worker, slots, log };
  }

  /** Opens a run of this spec and drives it, in a realm of its own if no other is named. */
  async drive(spec: Record<string, unknown>, named?: string): Promise<DrivenRun> {
    const { config, store, log } = this;
    const { redis, place } = this.server;
    const run = `parts-${++this.runs}`;
    const read = await readRunSpec(this.folder, config, { name: run, ...spec });
    const realm = named ?? run;
    const owner = `driver-of-${run}`;
    const key = wantedKey(read.spec.verifier, config.ambertraceApiKey);
    const opened = await openRun({ run, redis, store, realm, owner, key, ...read });
    const { groups, groupSize } = opened.settings.plan;
    const { epoch, settings, plan } = opened;
    const queue = new MemberQueue(place, realm);
    const fleet = new Fleet(redis, place, realm);
    const driver = new Driver(run, epoch, { redis, queue, fleet, settings, groups, groupSize, plan, owner, log });
    const end = driver.drive();
    this.onClose(async () => {
      driver.drain();
      await end;
      await queue.close();
      fleet.close();
    });
    const status = async (): Promise<RunStatus> => (await readStatus(redis, run)) as RunStatus;
    return { ...opened, run, driver, end, status };
  }

  /** Run when the test is over, the last first. */
  onClose(close: () => unknown): void {
    this.closing.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.closing.splice(0).reverse()) await close();
    await this.server.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
