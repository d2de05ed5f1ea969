// The Docker engine as the sandbox needs it: the only file that knows dockerode. Every call has a deadline; one that
// overruns it is an EngineError, and what it may still bring about is the caller's to remove (containers have names of ours).

import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import Docker from 'dockerode';
import type { EngineFacts } from '../../../shared/sandbox.ts';
import { boxBody, type ContainerPlan } from './box-body.ts';
import { type EngineAddress, engineAddress } from './engine-address.ts';
import { seccompProfile } from './seccomp.ts';

/** What `uname -m` says, as images name it. */
const IMAGE_ARCHITECTURES: Record<string, string> = { x86_64: 'amd64', aarch64: 'arm64' };

export class EngineError extends Error {
  /** HTTP status of the engine's answer; 0 where there was none. */
  readonly status: number;
  readonly step: string;
  constructor(step: string, status: number, message: string) {
    super(`${step}: ${message}`);
    this.name = 'EngineError';
    this.step = step;
    this.status = status;
  }
}

export interface ImageFacts {
  id: string;
  os: string;
  architecture: string;
  env: string[];
  volumes: string[];
}

/** `base` becomes `tag` with the file `path` of `source` in it; `folders` and `files` have to be such in it, if they are there. */
interface Graft {
  base: string;
  source: string;
  path: string;
  tag: string;
  changes: string[];
  folders: readonly string[];
  files: readonly string[];
}

export interface Death {
  exitCode: number | null;
  oom: boolean;
  /** Somebody asked the engine to kill or stop it. */
  killed: boolean;
}

interface EngineEvent {
  Action?: string;
  Actor?: { Attributes?: { exitCode?: string } };
  timeNano?: number;
}

export class DockerEngine {
  readonly #docker: Docker;
  readonly #seccomp = seccompProfile();

  constructor(dockerHost: string | null) {
    this.#docker = connect(dockerHost);
  }

  async ping(withinMs: number): Promise<void> {
    await bounded('ping', withinMs, this.#docker.ping());
  }

  /** It refuses a box that asks for more CPUs than it has. */
  async facts(): Promise<EngineFacts> {
    const info = (await bounded('info', 15_000, this.#docker.info())) as {
      ID?: string;
      NCPU?: number;
      MemTotal?: number;
      Architecture?: string;
      Runtimes?: Record<string, unknown>;
    };
    const machine = info.Architecture ?? '';
    return {
      id: info.ID ?? 'unnamed',
      cpus: info.NCPU ?? 1,
      memoryMb: Math.floor((info.MemTotal ?? 1024 ** 3) / 1024 ** 2),
      architecture: IMAGE_ARCHITECTURES[machine] ?? machine,
      runtimes: Object.keys(info.Runtimes ?? {}),
    };
  }

  /** Null: there is no such image. */
  async image(name: string): Promise<ImageFacts | null> {
    try {
      const found = await bounded('inspect image', 15_000, this.#docker.getImage(name).inspect());
      return {
        id: found.Id,
        os: found.Os,
        architecture: found.Architecture,
        env: found.Config.Env ?? [],
        volumes: Object.keys(found.Config.Volumes ?? {}),
      };
    } catch (error) {
      if (error instanceof EngineError && error.status === 404) return null;
      throw error;
    }
  }

  /** Creates; the container is not started. */
  async create(plan: ContainerPlan): Promise<void> {
    await bounded('create', 30_000, this.#docker.createContainer({ name: plan.name, ...boxBody(plan, this.#seccomp) }));
  }

  /** Before the start, so that not a byte is lost. */
  async attach(name: string): Promise<Duplex> {
    const attached = this.#docker
      .getContainer(name)
      .attach({ stream: true, stdin: true, stdout: true, stderr: true, hijack: true });
    return (await bounded('attach', 15_000, attached, (late) => (late as Duplex).destroy())) as Duplex;
  }

  async start(name: string): Promise<void> {
    await bounded('start', 30_000, this.#docker.getContainer(name).start());
  }

  /** Resolves when the container is removed (to be called before its start); false if that cannot be learnt. */
  removed(name: string): Promise<boolean> {
    return this.#docker
      .getContainer(name)
      .wait({ condition: 'removed' })
      .then(
        () => true,
        () => false,
      );
  }

  /** Removes, running or not; true once it is not there any more. */
  async remove(name: string, withinMs = 20_000): Promise<boolean> {
    try {
      await bounded('remove', withinMs, this.#docker.getContainer(name).remove({ force: true, v: true }));
      return true;
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.status === 404) return true;
      // 409: its removal is under way already
      return error.status === 409 ? !(await this.#exists(name)) : false;
    }
  }

  async #exists(name: string): Promise<boolean> {
    for (let turn = 0; turn < 50; turn += 1) {
      try {
        await bounded('inspect', 5_000, this.#docker.getContainer(name).inspect());
      } catch (error) {
        if (error instanceof EngineError && error.status === 404) return false;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return true;
  }

  /** What the engine saw of the container's end; it keeps its last 256 events also of removed ones. Memory that was short before
   *  `sinceMs` is another episode's. */
  async death(name: string, sinceMs: number): Promise<Death> {
    const untilMs = Date.now();
    const stream = await bounded(
      'events',
      5_000,
      this.#docker.getEvents({
        since: Math.floor(sinceMs / 1000),
        until: Math.ceil(untilMs / 1000),
        filters: JSON.stringify({ container: [name], event: ['die', 'oom', 'kill'] }),
      }),
    );
    const text = await bounded('events', 5_000, collect(stream));
    const death: Death = { exitCode: null, oom: false, killed: false };
    for (const line of text.split('\n')) {
      if (line.trim() === '') continue;
      const event = JSON.parse(line) as EngineEvent;
      if (event.Action === 'oom' && (event.timeNano ?? Number.POSITIVE_INFINITY) / 1e6 >= sinceMs) death.oom = true;
      if (event.Action === 'kill') death.killed = true;
      if (event.Action === 'die') death.exitCode = Number(event.Actor?.Attributes?.exitCode ?? Number.NaN);
    }
    return death;
  }

  async labelled(label: string): Promise<{ id: string; labels: Record<string, string> }[]> {
    const found = await bounded(
      'list',
      20_000,
      this.#docker.listContainers({ all: true, filters: { label: [label] } }),
    );
    return found.map((one) => ({ id: one.Id, labels: one.Labels }));
  }

  /** A new image: `base` with one file of `source` copied in and a start of its own. Both stay as they are. */
  async graft(plan: Graft): Promise<void> {
    const made: Docker.Container[] = [];
    const container = async (image: string) => {
      const one = await bounded('create', 30_000, this.#docker.createContainer({ Image: image, Cmd: ['/'] }));
      made.push(one);
      return one;
    };
    try {
      const [from, to] = [await container(plan.source), await container(plan.base)];
      for (const folder of plan.folders)
        if (!isFolder((await modeOf(to, folder))?.mode ?? GO_FOLDER))
          throw new EngineError('look', 0, `its ${folder} is no folder`);
      for (const file of plan.files)
        if (!(await isFileOrNothing(to, file))) throw new EngineError('look', 0, `its ${file} is no file`);
      const archive = await bounded('copy out', 15_000, from.getArchive({ path: plan.path }));
      await bounded('copy in', 30_000, to.putArchive(archive, { path: '/' }));
      const changes = [...plan.changes, `LABEL ${GRAFT_LABEL}=${plan.tag}`];
      // named only when it is whole: what has no name yet must not look like what has lost it
      const { Id } = (await bounded('commit', 120_000, to.commit({ changes, pause: false }))) as { Id: string };
      const [repo = '', tag = ''] = plan.tag.split(':');
      if ((await this.image(plan.tag)) === null)
        await bounded('tag', 15_000, this.#docker.getImage(Id).tag({ repo, tag }));
      if ((await this.image(plan.tag))?.id !== Id) await this.#dropImage(Id);
      await this.#dropUntagged(plan.tag);
    } finally {
      for (const one of made) await this.remove(one.id);
    }
  }

  /** Two processes may graft the same at once: the tag is the later one's, the other image is nobody's after a while. */
  async #dropUntagged(tag: string): Promise<void> {
    const filters = { label: [`${GRAFT_LABEL}=${tag}`], dangling: ['true'] };
    for (const one of await bounded('list images', 15_000, this.#docker.listImages({ filters })))
      if (one.Created * 1000 < Date.now() - UNNAMED_MS) await this.#dropImage(one.Id);
  }

  async #dropImage(id: string): Promise<void> {
    await bounded('remove image', 15_000, this.#docker.getImage(id).remove()).catch(() => {});
  }
}

/** No graft takes longer from its commit to its name. */
const UNNAMED_MS = 300_000;
const GRAFT_LABEL = 'rollout-farm.box';

function connect(dockerHost: string | null): Docker {
  // All of these are named, or the library would take them from the environment.
  const nothing = { host: undefined, port: undefined, protocol: 'http' as const, ca: undefined, cert: undefined };
  const address: EngineAddress = engineAddress(dockerHost);
  return new Docker({ ...nothing, socketPath: undefined, ...address } as Docker.DockerOptions);
}

/** Links count as what they are; null: nothing is there. */
async function modeOf(container: Docker.Container, path: string): Promise<{ mode: number; linkTarget: string } | null> {
  const answer = await bounded(`look at ${path}`, 15_000, container.infoArchive({ path })).catch(
    (error: EngineError) => {
      if (error.status === 404) return null;
      throw error;
    },
  );
  if (answer === null) return null;
  const header = (answer as unknown as IncomingMessage).headers['x-docker-container-path-stat'];
  return JSON.parse(Buffer.from(String(header), 'base64').toString()) as { mode: number; linkTarget: string };
}

/** Of Go's 32 mode bits: the highest, and those of whatever is no ordinary file. */
const GO_FOLDER = 2 ** 31;
const GO_LINK = 2 ** 27;
const GO_NO_FILE = GO_FOLDER + GO_LINK + 2 ** 26 + 2 ** 25 + 2 ** 24 + 2 ** 21 + 2 ** 19;

function isFolder(mode: number): boolean {
  return mode >= GO_FOLDER;
}

/** Also at the end of links. */
async function isFileOrNothing(container: Docker.Container, path: string): Promise<boolean> {
  let found = await modeOf(container, path);
  for (let links = 0; found !== null && (found.mode & GO_LINK) !== 0; links += 1) {
    if (links === 40) return false;
    found = await modeOf(container, found.linkTarget);
  }
  return found === null || (found.mode & GO_NO_FILE) === 0;
}

async function collect(stream: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  for await (const chunk of stream) text += String(chunk);
  return text;
}

/** `late` gets what arrives after the deadline. */
async function bounded<T>(step: string, withinMs: number, call: Promise<T>, late?: (value: T) => void): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      over = true;
      reject(new EngineError(step, 0, `no answer within ${withinMs} ms`));
    }, withinMs);
  });
  call.then(
    (value) => {
      if (over) late?.(value);
    },
    () => {},
  );
  try {
    return await Promise.race([call, deadline]);
  } catch (error) {
    if (error instanceof EngineError) throw error;
    const { statusCode, message } = error as { statusCode?: number; message?: string };
    throw new EngineError(step, statusCode ?? 0, message ?? String(error));
  } finally {
    clearTimeout(timer);
  }
}
