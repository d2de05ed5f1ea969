// The farm that is to be set on fire, in a folder of its own: Redis, a disk for the store, a verifier, links that can be cut,
// and several processes of each role. What this machine cannot do is named once, and the faults that need it are left out.

import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type Config, childEnvironment } from '../../shared/config.ts';
import { Disk, sweepDisks } from './disk.ts';
import { LedgerServer } from './ledger-server.ts';
import { type Endpoint, Link } from './link.ts';
import { LogBook } from './log-book.ts';
import { Rack, sweepRacks } from './rack.ts';
import { S3Server } from './s3-server.ts';
import type { FaultKind, StoreKind } from './schedule.ts';
import { type Part, type RoleKind, Troupe } from './troupe.ts';
import { freePort, Verifier } from './verifier.ts';
import { clockLibrary, sweepClocks, WallClock } from './wall-clock.ts';

const LEAVE_MS = 40_000;
export const ROLLOUT_SLOTS = 3;
/** The worker on another machine. */
const RACKED_NUMBER = 2;
export const RACKED = `rollout-${RACKED_NUMBER}`;
const ENGINE_SOCKET = '/var/run/docker.sock';
const PREFIX = 'farm-chaos-';
/** Marks a folder whose logs somebody wants to read. */
const KEPT = 'kept';
/** The stand-in takes any key that begins so. */
const KEY = 'at_chaos_0123456789abcdef';

export class Scene {
  readonly folder: string;
  /** FARM_DATA of all that belongs to it. */
  readonly data: string;
  readonly logs: LogBook;
  /** The links to Redis, by the name of whose they are. */
  readonly links = new Map<string, Link>();
  readonly clocks = new Map<string, WallClock>();
  readonly gatewayPorts: number[] = [];
  ledger!: LedgerServer;
  /** Under the store, and under Redis. */
  disk!: Disk;
  ledgerDisk!: Disk;
  verifier!: Verifier;
  s3: S3Server | null = null;
  engine: Link | null = null;
  rack: Rack | null = null;
  troupe!: Troupe;
  /** Of the farm's commands, as a user has it. */
  environment!: NodeJS.ProcessEnv;
  private readonly config: Config;

  private constructor(config: Config) {
    this.config = config;
    this.folder = mkdtempSync(path.join(tmpdir(), `${PREFIX}${process.pid}-`));
    this.data = path.join(this.folder, 'data');
    mkdirSync(this.data);
    this.logs = new LogBook(path.join(this.folder, 'logs'));
  }

  /** `kinds`: the faults that are to come, so that nothing is set up for those that are not. */
  static async set(config: Config, kinds: ReadonlySet<FaultKind>, store: StoreKind): Promise<Scene> {
    await sweepScenes();
    const scene = new Scene(config);
    try {
      await scene.build(kinds, store);
      return scene;
    } catch (error) {
      await scene.close({ keep: false });
      throw error;
    }
  }

  /** Why this machine cannot have such a fault; null if it can. */
  lacks(kind: FaultKind): string | null {
    switch (kind) {
      case 'rack-cut':
        return this.rack === null ? 'network namespaces need root and iproute2' : null;
      case 'clock-back':
      case 'clock-ahead':
        return this.clocks.size === 0 ? 'libfaketime is not installed' : null;
      case 'engine-hung':
      case 'engine-gone':
        return this.engine === null ? 'the engine is not on a socket of this machine' : null;
      case 'store-full':
      case 'store-readonly':
        return this.disk.kind === 'none' ? 'mounting needs root' : null;
      case 'store-frozen':
      case 'store-slow':
        return this.disk.kind === 'loop' ? null : 'a disk that freezes needs root and a loop device';
      case 'power-lost':
        return this.disk.kind === 'loop' ? null : 'a disk that loses its power needs root and a loop device';
      default:
        return null;
    }
  }

  get run(): string {
    return 'chaos';
  }

  farmId(): Promise<string | null> {
    return this.ledger.admin.get('farm:id').catch(() => null);
  }

  /** Ends all of it. `keep`: the folder with the logs stays. */
  async close({ keep }: { keep: boolean }): Promise<void> {
    await this.disk?.freeze(false).catch(() => {});
    await this.troupe?.kill();
    await this.verifier?.down();
    await this.ledger?.close();
    await this.s3?.close();
    await Promise.all([...this.links.values()].map((link) => link.close()));
    await this.engine?.close();
    await this.rack?.close();
    await this.disk?.close();
    await this.ledgerDisk?.close();
    sweepClocks();
    if (keep) writeFileSync(path.join(this.folder, KEPT), '');
    else rmSync(this.folder, { recursive: true, force: true });
  }

  /** Drains every process; names those who did not go. */
  leave(): Promise<string[]> {
    return this.troupe.leave(LEAVE_MS);
  }

  private async build(kinds: ReadonlySet<FaultKind>, store: StoreKind): Promise<void> {
    const base = {
      FARM_DATA: this.data,
      FARM_API_KEY: '',
      AMBERTRACE_API_KEY: KEY,
      LOG_LEVEL: 'info',
      NO_COLOR: '1',
    };
    const clocks = kinds.has('clock-back') || kinds.has('clock-ahead');
    const library = clocks ? clockLibrary() : null;
    const clockOf = (name: string): Record<string, string> => {
      if (library === null) return {};
      const clock = this.clocks.get(name) ?? new WallClock(library, this.folder, name);
      this.clocks.set(name, clock);
      return clock.environment;
    };
    this.ledgerDisk = await Disk.make(this.folder, 'ledger-disk');
    this.ledger = new LedgerServer(this.folder, this.ledgerDisk.folder);
    await this.ledger.start();
    this.disk = await Disk.make(this.folder);
    this.s3 = store === 's3' ? await S3Server.open(this.folder) : null;
    this.rack = kinds.has('rack-cut') ? await Rack.build() : null;
    this.verifier = await Verifier.start(childEnvironment(base));
    const engineHost = await this.linkEngine();
    const place = this.s3?.environment ?? { FARM_STORE: this.disk.store };
    const shared = { ...base, ...engineHost, ...place, AMBERTRACE_BASE_URL: this.verifier.baseUrl };
    const reached = async (name: string, at: Endpoint): Promise<Record<string, string>> => {
      const link = await Link.open(at, { path: this.ledger.socket });
      this.links.set(name, link);
      const host = 'host' in at ? at.host : '127.0.0.1';
      return { REDIS_URL: `redis://:${this.ledger.password}@${host}:${link.port}` };
    };
    const local: Endpoint = { host: '127.0.0.1', port: 0 };
    const parts: Part[] = [];
    const add = async (role: RoleKind, n: number, args: string[], rack: Rack | null = null): Promise<void> => {
      const name = `${role}-${n}`;
      const redis = await reached(name, rack === null ? local : { host: rack.address, port: 0 });
      const clock = n === 0 && (kinds.has('clock-back') || kinds.has('clock-ahead')) ? clockOf(name) : {};
      const environment = childEnvironment({ ...shared, ...redis, ...clock });
      parts.push({ name, role, args, environment, prefix: rack?.prefix ?? [] });
    };
    for (const n of [0, 1]) {
      await add('rollout', n, ['worker', 'rollout', '--concurrency', String(ROLLOUT_SLOTS)]);
      await add('verify', n, ['worker', 'verify', '--concurrency', '8']);
      await add('collect', n, ['worker', 'collect']);
      const port = await freePort();
      this.gatewayPorts.push(port);
      await add('gateway', n, ['serve', '--port', String(port)]);
    }
    if (this.rack !== null)
      await add('rollout', RACKED_NUMBER, ['worker', 'rollout', '--concurrency', String(ROLLOUT_SLOTS)], this.rack);
    this.environment = childEnvironment({ ...shared, ...(await reached('desk', local)) });
    this.troupe = new Troupe(parts, this.logs);
    for (const { name } of parts) this.troupe.raise(name);
  }

  /** The engine behind a link of ours: it can be hung for this farm, and for nobody else. */
  private async linkEngine(): Promise<Record<string, string>> {
    const host = this.config.dockerHost;
    const socket = host === null ? ENGINE_SOCKET : host.startsWith('unix://') ? host.slice('unix://'.length) : null;
    if (socket === null || !existsSync(socket)) return {};
    const at = path.join(this.folder, 'engine.sock');
    this.engine = await Link.open({ path: at }, { path: socket });
    return { DOCKER_HOST: `unix://${at}` };
  }
}

/** What benchmarks left behind that were killed: their processes went with them, mounts and namespaces stay. */
async function sweepScenes(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
    const folder = path.join(tmpdir(), name);
    if (pid === undefined || existsSync(`/proc/${pid}`) || existsSync(path.join(folder, KEPT))) continue;
    await sweepDisks(folder);
    rmSync(folder, { recursive: true, force: true });
  }
  await sweepRacks();
  sweepClocks();
}
