// A farm brought up by docker-compose.yml under a project of the test's own, on images of this checkout. Everything that it
// made is gone after `down`, or the test that asks for it fails.

import { execFile, execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './built.ts';
import { freePort } from './port.ts';

const run = promisify(execFile);
/** `docker compose` tries the same with Compose v2. */
const [COMMAND = '', ...FIRST] = (process.env.COMPOSE ?? 'docker-compose').split(' ');
const SOCKET = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '');
const BIG = 64 * 1024 * 1024;

export interface Told {
  code: number;
  stdout: string;
  stderr: string;
}

export function docker(...args: string[]): string {
  return execFileSync('docker', args, { encoding: 'utf8', maxBuffer: BIG }).trim();
}

/** Builds what is missing; gives the tag of this checkout's images. */
export async function buildImages(): Promise<string> {
  const build = path.join(ROOT, 'infra/images/build.sh');
  const env = { ...process.env, NO_ENV_FILE: '1' };
  await run(build, ['metrics'], { env, maxBuffer: BIG });
  return (await run(build, ['--tag'], { env })).stdout.trim();
}

export class ComposeFarm {
  readonly project = `farm-test-${randomBytes(4).toString('hex')}`;
  readonly key = randomBytes(12).toString('hex');
  readonly url: string;
  readonly prometheus: string;
  private readonly folder = mkdtempSync(path.join(tmpdir(), 'farm-test-compose-'));
  private readonly env: Record<string, string>;

  private constructor(ports: { gateway: number; prometheus: number }, tag: string, more: Record<string, string>) {
    this.url = `http://127.0.0.1:${ports.gateway}`;
    this.prometheus = `http://127.0.0.1:${ports.prometheus}`;
    this.env = {
      REDIS_PASSWORD: randomBytes(12).toString('hex'),
      FARM_API_KEY: this.key,
      AWS_ACCESS_KEY_ID: 'farm-test',
      AWS_SECRET_ACCESS_KEY: randomBytes(12).toString('hex'),
      DOCKER_GID: String(statSync(SOCKET).gid),
      ENGINE_SOCKET: SOCKET,
      FARM_TAG: tag,
      FARM_PORT: String(ports.gateway),
      PROMETHEUS_PORT: String(ports.prometheus),
      ...more,
    };
  }

  static async of(tag: string, more: Record<string, string> = {}): Promise<ComposeFarm> {
    return new ComposeFarm({ gateway: await freePort(), prometheus: await freePort() }, tag, more);
  }

  /** `without`: variables that are left out of the environment. */
  async compose(args: readonly string[], without: readonly string[] = []): Promise<Told> {
    const file = path.join(this.folder, 'env');
    const lines = Object.entries(this.env).filter(([name]) => !without.includes(name));
    writeFileSync(file, lines.map(([name, value]) => `${name}=${value}\n`).join(''), { mode: 0o600 });
    const { PATH = '', HOME = '', DOCKER_HOST } = process.env;
    const env = { PATH, HOME, ...(DOCKER_HOST === undefined ? {} : { DOCKER_HOST }) };
    const all = [...FIRST, '--project-name', this.project, '--env-file', file, ...args];
    try {
      const { stdout, stderr } = await run(COMMAND, all, { cwd: ROOT, env, maxBuffer: BIG });
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string };
      return { code: typeof code === 'number' ? code : 127, stdout, stderr: stderr || String(error) };
    }
  }

  /** Throws with what it says where it does not succeed. */
  async must(...args: string[]): Promise<string> {
    const told = await this.compose(args);
    if (told.code !== 0)
      throw new Error(`${COMMAND} ${args.join(' ')}: exit ${told.code}\n${told.stdout}\n${told.stderr}`);
    return told.stdout;
  }

  /** Ids of a service's containers that run, or are in another state. */
  containers(service: string, status = 'running'): string[] {
    const project = `label=com.docker.compose.project=${this.project}`;
    const filters = [project, `label=com.docker.compose.service=${service}`, `status=${status}`];
    return docker('ps', '--all', '--quiet', '--no-trunc', ...filters.flatMap((one) => ['--filter', one]))
      .split('\n')
      .filter(Boolean);
  }

  /** The `farm` command in a service's container. */
  farm(service: string, ...args: string[]): Promise<Told> {
    return this.compose(['exec', '-T', service, 'farm', ...args]);
  }

  request(target: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.url}${target}`, {
      ...init,
      headers: { authorization: `Bearer ${this.key}`, ...init.headers },
    });
  }

  /** A figure of /metrics, by its name and labels as they stand there; null if it is not there, or nobody answers yet. */
  async metric(name: string): Promise<number | null> {
    const text = await this.request('/metrics', { signal: AbortSignal.timeout(10_000) }).then(
      (answer) => answer.text(),
      () => '',
    );
    const line = text.split('\n').find((one) => one.startsWith(`${name} `));
    return line === undefined ? null : Number(line.slice(name.length + 1));
  }

  async logs(): Promise<string> {
    return (await this.compose(['logs', '--no-color', '--tail', '60'])).stdout;
  }

  /** Containers, networks and volumes of the project, whatever state they are in. */
  left(): string[] {
    const filter = ['--filter', `label=com.docker.compose.project=${this.project}`];
    return [
      docker('ps', '--all', '--format', 'container {{.Names}}', ...filter),
      docker('network', 'ls', '--format', 'network {{.Name}}', ...filter),
      docker('volume', 'ls', '--format', 'volume {{.Name}}', ...filter),
    ]
      .flatMap((text) => text.split('\n'))
      .filter(Boolean);
  }

  async down(): Promise<void> {
    await this.must('down', '--volumes', '--timeout', '20');
    rmSync(this.folder, { recursive: true, force: true });
  }
}
