// The ways to run untrusted work that are held against each other. A slot takes one item after another; as many slots as
// the width. The three that are not ours know only commands: files laid into a folder, then each step's command in it.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Box, SandboxDriver, SandboxLimits } from '../shared/sandbox.ts';
import { makeEnvironment } from '../workers/rollout/environments/registry.ts';
import { runEpisode } from '../workers/rollout/episode.ts';
import { scriptedPolicy } from '../workers/rollout/policies/scripted.ts';
import type { Item, Step } from './sandbox-work.ts';

export interface Slot {
  /** When all slots are there, before the clock starts. */
  ready?(): Promise<void>;
  /** Whether what came out is what the item says; throws if nothing came out. */
  play(item: Item): Promise<boolean>;
  close(): Promise<void>;
}

export interface SandboxArm {
  name: string;
  /** Before the clock starts; `first` may be played to have ready what later ones find ready. */
  slot(first: Item): Promise<Slot>;
}

/** An engine that does not say what it has is not asked for longer. */
const ENGINE_MS = 30_000;
const LABEL = 'rollout-farm.bench';
const FOUND = `{{.ID}} {{.Label "${LABEL}"}}`;
/** The usual Python of the system: a shim in front of it would be measured too. */
const PYTHON = '/usr/bin/python3';

/** Crucible's pattern: a container per command, its files in a folder that is mounted into it. */
export function dockerRunArm(limits: SandboxLimits, id: string): SandboxArm {
  return {
    name: 'docker run',
    slot: async () => ({
      play: async (item) => {
        const folder = await mkdtemp(path.join(tmpdir(), 'farm-bench-'));
        try {
          await chmod(folder, 0o777);
          let exit = 0;
          for (const step of item.steps) {
            await lay(step, folder);
            const mount = ['-v', `${folder}:/work`, '-w', '/work'];
            exit = await command(
              'docker',
              ['run', '--rm', '-i', ...hardening(limits, id), ...mount, limits.image, ...bounded(step)],
              step,
            );
          }
          return asSaid(item, exit);
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      },
      close: async () => {},
    }),
  };
}

/** One container for all, an `exec` per step; files come in through the shell that runs the step. */
export function dockerExecArm(limits: SandboxLimits, id: string): SandboxArm {
  return {
    name: 'container + exec',
    slot: async () => {
      const name = `rollout-farm-bench-${randomBytes(6).toString('hex')}`;
      const folder = ['--tmpfs', '/work:uid=65534,size=64m', '-w', '/work'];
      const run = [
        'run',
        '-d',
        '--rm',
        '--name',
        name,
        ...hardening(limits, id),
        ...folder,
        limits.image,
        'sleep',
        '36000',
      ];
      if ((await command('docker', run, null)) !== 0) throw new Error('a container for `docker exec` did not start');
      return {
        play: async (item) => {
          let exit = 0;
          for (const [i, step] of item.steps.entries()) {
            const clean = i === 0 && item.episode !== null ? 'rm -rf /work/*\n' : '';
            const script = `${clean}${laying(step)}`;
            if (step.stdin !== null || script === '')
              exit = await command('docker', ['exec', '-i', name, ...bounded(step)], step);
            else {
              const fed = { ...step, stdin: `${script}exec "$@" < /dev/null\n` };
              exit = await command('docker', ['exec', '-i', name, 'sh', '-s', ...bounded(step)], fed);
            }
          }
          return asSaid(item, exit);
        },
        close: async () => {
          await command('docker', ['rm', '-f', name], null);
        },
      };
    },
  };
}

/** No sandbox at all: only for work that is known to be harmless. */
export function subprocessArm(): SandboxArm {
  return {
    name: 'bare subprocess',
    slot: async () => ({
      play: async (item) => {
        const folder = await mkdtemp(path.join(tmpdir(), 'farm-bench-'));
        try {
          let exit = 0;
          for (const step of item.steps) {
            await lay(step, folder);
            const [program = '', ...rest] = step.argv;
            exit = await command(program === 'python3' ? PYTHON : program, rest, step, folder);
          }
          return asSaid(item, exit);
        } finally {
          await rm(folder, { recursive: true, force: true });
        }
      },
      close: async () => {},
    }),
  };
}

export interface Boxes {
  driver: SandboxDriver;
  limits: SandboxLimits;
  labels: { farm: string; worker: string; run?: string };
  /** How long each box was waited for. */
  opened: number[];
}

/** Ours, a box per item, made for it alone. */
export function freshArm(boxes: Boxes): SandboxArm {
  const play = (item: Item): Promise<boolean> => inBox(boxes, item);
  return { name: 'ours, fresh', slot: async () => ({ play, close: async () => {} }) };
}

/** Ours, boxes handed from one item to the next: as many as slots are there before the clock starts, as in a run's middle. */
export function recycledArm(name: string, boxes: Boxes): SandboxArm {
  const play = (item: Item): Promise<boolean> => inBox(boxes, item);
  return {
    name,
    slot: async (first) => {
      let held: Box | null = await boxes.driver.open(boxes.limits, boxes.labels, new AbortController().signal);
      const release = async (): Promise<void> => {
        const box = held;
        held = null;
        await box?.close();
      };
      await playIn(held, first, boxes.limits);
      return { ready: release, play, close: release };
    },
  };
}

async function inBox(boxes: Boxes, item: Item): Promise<boolean> {
  const box = await openBox(boxes);
  try {
    return await playIn(box, item, boxes.limits);
  } finally {
    await box.close();
  }
}

/** Ours, in a box that is open already: what a step costs inside an episode. */
export function openBoxArm(name: string, boxes: Boxes): SandboxArm {
  return {
    name,
    slot: async () => {
      const box = await openBox(boxes);
      return { play: (item) => playIn(box, item, boxes.limits), close: () => box.close() };
    },
  };
}

/** Episodes that need no box. */
export function outsideArm(limits: SandboxLimits): SandboxArm {
  const none = async (): Promise<Box> => {
    throw new Error('an episode without a box asked for one');
  };
  return { name: 'ours', slot: async () => ({ play: (item) => episode(none, item, limits), close: async () => {} }) };
}

async function openBox(boxes: Boxes): Promise<Box> {
  const asked = performance.now();
  const box = await boxes.driver.open(boxes.limits, boxes.labels, new AbortController().signal);
  boxes.opened.push(performance.now() - asked);
  return box;
}

async function playIn(box: Box, item: Item, limits: SandboxLimits): Promise<boolean> {
  if (item.episode !== null) return episode(async () => box, item, limits);
  let exit = 0;
  for (const { argv, timeoutMs } of item.steps)
    exit = (await box.run({ argv, timeoutMs, outputBytes: limits.outputBytes })).exitCode;
  return asSaid(item, exit);
}

async function episode(box: () => Promise<Box>, item: Item, limits: SandboxLimits): Promise<boolean> {
  if (item.episode === null) throw new Error(`${item.id} is no episode`);
  const { env, config, actions } = item.episode;
  const { signal } = new AbortController();
  const context = { box, stepTimeoutMs: limits.timeoutMs, outputBytes: limits.outputBytes, signal };
  const environment = makeEnvironment(env, config, context);
  const policy = scriptedPolicy(actions);
  const options = { environment, seed: 0n, policy, maxSteps: actions.length, signal, knownSignature: null };
  const played = await runEpisode(options);
  if (played.status !== 'completed') throw new Error(`${item.id}: ${played.cause}: ${played.detail}`);
  const passed = played.trajectory.transitions.at(-1)?.reward === 1;
  return item.passes === null || passed === item.passes;
}

function asSaid(item: Item, exit: number): boolean {
  return item.passes === null || (exit === 0) === item.passes;
}

function hardening(limits: SandboxLimits, id: string): string[] {
  return [
    ...['--label', `${LABEL}=${id}`, '--network', 'none', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...['--read-only', '--tmpfs', '/tmp', '--user', '65534:65534', '--pids-limit', String(limits.pids)],
    ...['--memory', `${limits.memoryMb}m`, '--memory-swap', `${limits.memoryMb}m`, '--cpus', String(limits.cpus)],
  ];
}

/** What killing the client would leave running is ended inside. */
function bounded(step: Step): string[] {
  return ['timeout', '-s', 'KILL', String(step.timeoutMs / 1000), ...step.argv];
}

async function lay(step: Step, folder: string): Promise<void> {
  for (const [name, text] of step.files) {
    const file = path.join(folder, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, text);
  }
}

function laying(step: Step): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
  return [...step.files]
    .map(
      ([name, text]) => `mkdir -p ${quoted(path.posix.dirname(name))}\nprintf %s ${quoted(text)} > ${quoted(name)}\n`,
    )
    .join('');
}

/** The exit status; 128 + N for a signal. */
function command(program: string, args: readonly string[], step: Step | null, cwd?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(program, args, {
      stdio: [step?.stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      ...(cwd === undefined ? {} : { cwd, env: { PATH: '/usr/local/bin:/usr/bin:/bin', PYTHONHASHSEED: '0' } }),
    });
    const timer = setTimeout(
      () => child.kill('SIGKILL'),
      (step?.timeoutMs ?? 30_000) + (cwd === undefined ? 30_000 : 0),
    );
    child.stdout?.resume();
    child.stderr?.resume();
    child.once('error', reject);
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      resolve(signal === null ? (code ?? 1) : 128);
    });
    if (step?.stdin) {
      child.stdin?.on('error', () => {}); // it need not read what it is given
      child.stdin?.end(step.stdin);
    }
  });
}

/** Containers of the arms that are not ours: those of benchmarks of which `gone` says so. */
export async function removeBenchContainers(gone: (id: string) => boolean, signal?: AbortSignal): Promise<void> {
  const bounds = { timeout: ENGINE_MS, killSignal: 'SIGKILL' as const, ...(signal ? { signal } : {}) };
  const asked = promisify(execFile)('docker', ['ps', '-a', '--filter', `label=${LABEL}`, '--format', FOUND], bounds);
  const { stdout } = await asked.catch(() => ({ stdout: '' }));
  const found = stdout.split('\n').map((line) => line.split(' '));
  const left = found.flatMap(([container, id]) => (container && id && gone(id) ? [container] : []));
  if (left.length > 0) await command('docker', ['rm', '-f', ...left], null);
}
