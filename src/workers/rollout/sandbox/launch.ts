// What both drivers ask of a command before they start it, and what they answer when it cannot be started.

import { constants } from 'node:os';
import type { Command, CommandResult } from '../../../shared/sandbox.ts';
import { encodeText } from './box-text.ts';

export const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** More than the kernel takes (2 MB in all, 128 KB for one) is its own E2BIG; this bounds what is sent to find out. */
const LAUNCH_BYTES = 3 * 1024 * 1024;
const STDIN_BYTES = 16 * 1024 * 1024;

/** Where a number has two names, the first is the usual one (EAGAIN, not EWOULDBLOCK). */
const ERRNO_NAMES = new Map(
  Object.entries(constants.errno)
    .reverse()
    .map(([name, value]) => [value, name]),
);

export function errnoName(errno: number): string {
  return ERRNO_NAMES.get(errno) ?? `E${errno}`;
}

/** The kernel's signal numbers, `SIGKILL` → 9. */
export function signalNumber(name: string): number {
  return (constants.signals as Record<string, number>)[name] ?? 0;
}

interface Launch {
  argv: Buffer[];
  env: Buffer[];
}

export type LaunchCheck = { status: 'usable'; launch: Launch } | { status: 'refused'; code: string; message: string };

/** The whole environment of a command: nothing of ours, nothing of the image's but PATH. */
export function commandEnvironment(command: Command, home: string, path: string): Record<string, string> {
  return {
    PATH: path,
    HOME: home,
    LANG: 'C.UTF-8',
    PYTHONHASHSEED: '0',
    PYTHONDONTWRITEBYTECODE: '1',
    ...command.env,
  };
}

export function checkLaunch(command: Command, home: string, path: string): LaunchCheck {
  if (command.argv.length === 0) return refused('EINVAL', 'an empty argument list');
  if (command.argv[0] === '') return refused('ENOENT', 'an empty program name');
  const environment = Object.entries(commandEnvironment(command, home, path));
  if (environment.some(([name]) => name === '' || name.includes('=')))
    return refused('EINVAL', 'a variable without a usable name');
  const argv: Buffer[] = [];
  const env: Buffer[] = [];
  let size = 0;
  for (const [text, list] of [
    ...command.argv.map((text) => [text, argv] as const),
    ...environment.map(([name, value]) => [`${name}=${value}`, env] as const),
  ]) {
    if (text.includes('\0')) return refused('EINVAL', 'a NUL byte in an argument');
    const bytes = encodeText(text);
    if (bytes === null) return refused('EILSEQ', 'a lone surrogate in an argument');
    size += bytes.length + 8;
    if (size > LAUNCH_BYTES) return refused('E2BIG', 'the arguments are too long');
    list.push(bytes);
  }
  if ((command.stdin?.length ?? 0) > STDIN_BYTES) return refused('EFBIG', 'stdin is longer than 16 MB');
  return { status: 'usable', launch: { argv, env } };
}

function refused(code: string, message: string): LaunchCheck {
  return { status: 'refused', code, message };
}

export function notStarted(code: string, message: string): CommandResult {
  return {
    cause: 'launch',
    exitCode: -1,
    launchError: { code, message },
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
    stdoutBytes: 0,
    stderrBytes: 0,
    oomKilled: false,
    pidsExceeded: false,
    diskFull: false,
    wallMs: 0,
  };
}

/** Keeps the head of a stream and counts the rest. */
export class Head {
  bytes = 0;
  readonly #cap: number;
  readonly #chunks: Buffer[] = [];
  #kept = 0;

  constructor(cap: number) {
    this.#cap = cap;
  }

  take(chunk: Buffer): void {
    this.bytes += chunk.length;
    const room = this.#cap - this.#kept;
    if (room <= 0) return;
    const part = chunk.length > room ? chunk.subarray(0, room) : chunk;
    this.#chunks.push(part);
    this.#kept += part.length;
  }

  content(): Buffer {
    return Buffer.concat(this.#chunks, this.#kept);
  }
}
