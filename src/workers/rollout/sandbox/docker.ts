// Boxes as containers: one a box, hardened, with the runner as its only way in. What a start needs is done in one
// scope that leaves nothing behind when it fails; starts are few at once, running boxes may be many.

import { randomBytes, randomInt } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import pLimit from 'p-limit';
import { messageOf, missingError } from '../../../shared/errors.ts';
import {
  type Box,
  BoxLost,
  type EngineFacts,
  type Labels,
  type SandboxDriver,
  type SandboxLimits,
} from '../../../shared/sandbox.ts';
import { within } from '../../../shared/within.ts';
import { RunnerBox } from './box.ts';
import { Channel, type Frame, u32, u64 } from './channel.ts';
import { DockerEngine, EngineError } from './engine.ts';
import type { Users } from './grading.ts';
import { graderHash, Harness } from './harness.ts';
import { type BoxImage, prepareImage, runnerHash } from './image.ts';

export interface DockerDriverOptions {
  /** Null: the machine's own engine. */
  dockerHost: string | null;
  /** Folder of the runner's sources; default: the checkout's. */
  runnerSource?: string;
  /** Folder of the grading harness; default: the checkout's. */
  harnessSource?: string;
  /** Containers starting at once in this process. */
  startsAtOnce?: number;
  /** Absolute lifetime of a box. */
  lifetimeMs?: number;
}

const STARTS_AT_ONCE = 2;
const LIFETIME_MS = 2 * 3_600_000;
/** After so long without a frame the runner takes its driver for dead. */
const SILENCE_MS = 15_000;
const HELLO_MS = 15_000;
const REMOVED_MS = 5_000;
/** What the runner and the kernel's own bookkeeping need beside the files. */
const RESERVED_KB = 48 * 1024;
/** Beside the pids of the spec: the runner, the nursery, what it forks a grade with, and the judge. */
const OWN_PROCESSES = 4;
/** Runtimes that are no more than the machine's own kernel: it counts what runs in the box. */
const SHARES_KERNEL = /^(runc|crun|youki|io\.containerd\.runc\..*|io\.containerd\.runtime\..*)$/;
/** The harness and its bytecode. */
const FARM_KB = 2 * 1024;
/** Boxes that die together were killed by something that befell the engine. */
const TOGETHER_MS = 1_500;

const LABEL = 'rollout-farm.farm';

export function createDockerDriver(options: DockerDriverOptions): SandboxDriver {
  return new DockerDriver(options);
}

class DockerDriver implements SandboxDriver {
  readonly kind = 'docker';
  readonly #engine: DockerEngine;
  readonly #options: DockerDriverOptions;
  readonly #images = new Map<string, Promise<BoxImage>>();
  /** Each with its two untrusted uids. */
  readonly #boxes = new Map<RunnerBox, Users>();
  #harness: Harness | null = null;
  readonly #limit: ReturnType<typeof pLimit>;
  #deaths: number[] = [];
  readonly #opening = new Set<Promise<void>>();
  #closed = false;

  constructor(options: DockerDriverOptions) {
    this.#options = options;
    this.#engine = new DockerEngine(options.dockerHost);
    this.#limit = pLimit(options.startsAtOnce ?? STARTS_AT_ONCE);
  }

  async prepare(image: string, runtime: string | null = null): Promise<{ imageId: string; runnerHash: string | null }> {
    const { imageId, runnerHash, engineRuntimes } = await this.#image(image);
    if (runtime !== null && !engineRuntimes.includes(runtime))
      throw missingError(
        'runtime_missing',
        `the Docker engine has no runtime "${runtime}"; it has ${engineRuntimes.join(', ')}`,
        'add it to the engine (/etc/docker/daemon.json, `runtimes`), or leave sandbox.runtime out',
      );
    return { imageId, runnerHash: graderHash(runnerHash, this.#grading.hash) };
  }

  get #grading(): Harness {
    this.#harness ??= new Harness(this.#options.harnessSource);
    return this.#harness;
  }

  async answers(): Promise<boolean> {
    try {
      await this.#engine.ping(5_000);
      return true;
    } catch {
      return false;
    }
  }

  engine(): Promise<EngineFacts> {
    return this.#engine.facts();
  }

  #image(image: string): Promise<BoxImage> {
    let found = this.#images.get(image);
    if (found === undefined) {
      found = prepareImage(this.#engine, image, runnerHash(this.#options.runnerSource)).catch((error: unknown) => {
        this.#images.delete(image);
        throw error instanceof EngineError
          ? missingError(
              'docker_unreachable',
              `the Docker engine fails (${error.message})`,
              'see the engine’s own log',
              error,
            )
          : error;
      });
      this.#images.set(image, found);
    }
    return found;
  }

  async open(limits: SandboxLimits, labels: Labels, signal: AbortSignal): Promise<Box> {
    const asked = performance.now();
    signal.throwIfAborted();
    let image: BoxImage;
    try {
      image = await this.#image(limits.image);
    } catch (error) {
      throw new BoxLost('start', 'engine', 'start:image', messageOf(error), error);
    }
    const opening = this.#limit(() => this.#open(limits, labels, signal, image, asked));
    const settled = opening.then(
      () => {},
      () => {},
    );
    this.#opening.add(settled);
    void settled.then(() => this.#opening.delete(settled));
    return opening;
  }

  async #open(
    limits: SandboxLimits,
    labels: Labels,
    signal: AbortSignal,
    image: BoxImage,
    asked: number,
  ): Promise<Box> {
    signal.throwIfAborted();
    if (this.#closed) throw new BoxLost('start', 'engine', 'start:closed', 'the driver is closed');
    const name = `rollout-farm-${randomBytes(8).toString('hex')}`;
    const users = this.#freeUsers();
    const { candidate, judge } = users;
    const lifetimeMs = this.#options.lifetimeMs ?? LIFETIME_MS;
    const startedMs = Date.now();
    let channel: Channel | null = null;
    try {
      const folders = tmpfsOf(limits, users);
      await this.#engine.create({
        name,
        image: image.tag,
        labels: {
          [LABEL]: labels.farm,
          'rollout-farm.worker': labels.worker,
          ...(labels.run === undefined ? {} : { 'rollout-farm.run': labels.run }),
          ...(labels.member === undefined ? {} : { 'rollout-farm.member': labels.member }),
          'rollout-farm.expires': String(startedMs + lifetimeMs),
        },
        memoryBytes: limits.memoryMb * 1024 * 1024,
        cpus: Math.min(limits.cpus, image.engineCpus),
        pids: hostProcesses(limits),
        runtime: limits.runtime,
        tmpfs: folders,
      });
      signal.throwIfAborted();
      const stream = await this.#engine.attach(name);
      channel = new Channel(stream);
      const removed = this.#engine.removed(name);
      signal.throwIfAborted();
      const hello = greeting(channel);
      const ids = [candidate, candidate, judge, judge].map((id) => u32(id));
      void channel.send('C', ...ids, u64(limits.tmpfsMb * 1024 * 1024), u64(lifetimeMs), u64(SILENCE_MS));
      const started = this.#engine.start(name);
      // a start that fails also ends the channel: what the engine says of it is the reason
      await Promise.all([started, hello.catch((error) => started.then(() => Promise.reject(error as Error)))]);
      signal.throwIfAborted();
      if (this.#closed) throw new Error('the driver was closed meanwhile');
      const end = () => this.#end(name, removed, box);
      const box: RunnerBox = new RunnerBox(channel, {
        imageId: image.imageId,
        runnerHash: graderHash(image.runnerHash, this.#grading.hash),
        users,
        harness: this.#grading,
        startMs: performance.now() - asked,
        path: image.path,
        judge: (running, why) => this.#judge(name, box, running, why),
        end,
      });
      this.#boxes.set(box, users);
      return box;
    } catch (error) {
      channel?.destroy();
      await this.#engine.remove(name).catch(() => false);
      if (signal.aborted) throw signal.reason;
      const step = error instanceof EngineError ? error.step : 'hello';
      // an image removed meanwhile is prepared anew for the next one
      if (error instanceof EngineError && error.status === 404) this.#images.delete(limits.image);
      const told = `no box of the image "${limits.image}": ${messageOf(error)}`;
      throw new BoxLost('start', 'engine', `start:${step.replaceAll(' ', '-')}`, told, error);
    }
  }

  #freeUsers(): Users {
    const used = new Set([...this.#boxes.values()].flatMap(({ candidate, judge }) => [candidate, judge]));
    const draw = (): number => {
      for (;;) {
        const uid = randomInt(10_000, 60_000);
        if (!used.has(uid)) {
          used.add(uid);
          return uid;
        }
      }
    };
    return { candidate: draw(), judge: draw() };
  }

  async #end(name: string, removed: Promise<boolean>, box: RunnerBox): Promise<void> {
    const gone = await within(removed, REMOVED_MS, false);
    // not the runner's doing then: force it, twice, and leave the rest to the sweeper
    if (!gone && !(await this.#engine.remove(name).catch(() => false)))
      await this.#engine.remove(name).catch(() => false);
    this.#boxes.delete(box);
  }

  async #judge(name: string, box: RunnerBox, running: boolean, why: string): Promise<BoxLost> {
    const at = performance.now();
    this.#deaths = [...this.#deaths.filter((time) => at - time < TOGETHER_MS), at];
    const lost = (blame: 'engine' | 'action', signature: string) =>
      new BoxLost('run', blame, signature, `the box is gone: ${why}`);
    try {
      await this.#engine.ping(5_000);
      // the engine needs a moment to see the death, neighbours one to die of the same cause
      await new Promise((resolve) => setTimeout(resolve, 400));
      const death = await this.#engine.death(name, box.sinceMs);
      const together = this.#deaths.filter((time) => Math.abs(time - at) < TOGETHER_MS).length > 1;
      const sick = [...this.#boxes.keys()].some((other) => other !== box && !other.well);
      const code = death.exitCode ?? 'alive';
      const signature = `died:${code}${death.oom ? ':oom' : ''}`;
      // 75, 76: the runner's own clocks, hence ours that stood still; a kill through the engine is somebody else's
      const outside = death.killed || code === 75 || code === 76 || code === 'alive';
      return lost(running && !outside && !together && !sick ? 'action' : 'engine', death.killed ? 'killed' : signature);
    } catch {
      return lost('engine', 'engine-silent');
    }
  }

  async sweep(farm: string, alive: (worker: string) => boolean): Promise<number> {
    let count = 0;
    for (const { id, labels } of await this.#engine.labelled(`${LABEL}=${farm}`)) {
      const expired = Number(labels['rollout-farm.expires'] ?? 0) < Date.now();
      if (!expired && alive(labels['rollout-farm.worker'] ?? '')) continue;
      if (await this.#engine.remove(id)) count += 1;
    }
    return count;
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#opening);
    await Promise.all([...this.#boxes.keys()].map((box) => box.close()));
  }
}

/** A kernel of the box's own has threads for itself and several for each process of the box, and all of them count. */
function hostProcesses({ pids, runtime }: SandboxLimits): number {
  return runtime === null || SHARES_KERNEL.test(runtime) ? pids + OWN_PROCESSES : 4 * (pids + OWN_PROCESSES) + 64;
}

/** Resolves when the runner has taken its settings. */
function greeting(channel: Channel): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the runner did not say hello')), HELLO_MS);
    channel.onFrame = (frame: Frame) => {
      clearTimeout(timer);
      if (frame.type === 'h') resolve();
      else reject(new Error(frame.body.toString('utf8')));
    };
    channel.onClosed = (why) => {
      clearTimeout(timer);
      reject(new Error(`${why} ${channel.lastWords}`.trim()));
    };
  });
}

/** The writable folders, and the one that only the runner writes to. Their pages count as memory, so all of them and the reserve fit into it. */
function tmpfsOf(limits: SandboxLimits, users: Users): Record<string, string> {
  const mb = limits.tmpfsMb * 1024;
  const askedKb = { work: mb, tmp: mb, shm: 16 * 1024, judge: mb * 0.75 };
  const freeKb = limits.memoryMb * 1024 - RESERVED_KB - FARM_KB;
  if (freeKb < 1024) throw new Error(`${limits.memoryMb} MB of memory are too few for a box: 51 at least`);
  const scale = Math.min(1, freeKb / Object.values(askedKb).reduce((sum, kb) => sum + kb, 0));
  // the kernel rounds up to whole pages
  const mount = (kb: number, inodes: number, exec: boolean, rest: string) =>
    `rw,nosuid,nodev,${exec ? 'exec' : 'noexec'},size=${Math.max(64, Math.floor((kb * scale) / 4) * 4)}k,nr_inodes=${inodes},${rest}`;
  const owned = (uid: number, mode: string) => `uid=${uid},gid=${uid},mode=${mode}`;
  return {
    '/work': mount(askedKb.work, 16_384, limits.exec, owned(users.candidate, '0755')),
    '/tmp': mount(askedKb.tmp, 4_096, limits.exec, 'mode=1777'),
    '/dev/shm': mount(askedKb.shm, 1_024, false, 'mode=1777'),
    '/judge': mount(askedKb.judge, 4_096, limits.exec, owned(users.judge, '0700')),
    '/farm': `rw,nosuid,nodev,noexec,size=${FARM_KB}k,nr_inodes=1024,uid=0,gid=0,mode=0755`,
  };
}
