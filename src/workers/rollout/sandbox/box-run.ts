// What runs in a box through its runner, be it a command or a grade: stdin and the frame that starts it go out, kept
// output comes back as it is made, and the last frame says how it ended.

import { BoxLost, type Command, type CommandResult } from '../../../shared/sandbox.ts';
import { type Frame, u32 } from './channel.ts';
import { errnoName, Head } from './launch.ts';

/** On top of a command's own time: kill, reap, rest of the output; of a grade, also the start of its interpreter. */
const GRACE_MS = 45_000;
/** What a timer of Node can hold. */
const LONGEST_MS = 2 ** 31 - 1;
const CHUNK_BYTES = 64 * 1024;
const RESULT_BYTES = 64 * 1024;

const CAUSES = ['exit', 'signal', 'timeout', 'launch', 'aborted', 'no-room'] as const;

/** The way to the runner: one request at a time, and its frames. */
export interface Link {
  /** One request and its answer, within `withinMs`. `begin` sends and returns what takes the frames. */
  ask<T>(
    running: boolean,
    withinMs: number,
    begin: (done: (value: T) => void) => Promise<(frame: Frame) => void>,
  ): Promise<T>;
  send(type: string, ...parts: Uint8Array[]): Promise<void>;
}

export interface Ended {
  result: CommandResult;
  /** A judge's last word. */
  said: Buffer;
  candidateSignal: number | null;
}

/** What is sent before it, without waiting for its answers. */
export interface Ahead {
  withinMs: number;
  send(): Promise<void>;
  /** An answer to it. True: the rest is in vain. */
  take(frame: Frame): boolean;
}

/** `start` is the frame that starts it, after the time and the bytes that are kept. Null: what went ahead of it failed. */
export async function runToEnd(
  link: Link,
  command: Command,
  start: { type: 'R' | 'G'; parts: Uint8Array[] },
  ahead: Ahead,
): Promise<Ended | null>;
export async function runToEnd(
  link: Link,
  command: Command,
  start: { type: 'R' | 'G'; parts: Uint8Array[] },
): Promise<Ended>;
export async function runToEnd(
  link: Link,
  command: Command,
  start: { type: 'R' | 'G'; parts: Uint8Array[] },
  ahead?: Ahead,
): Promise<Ended | null> {
  const stdout = new Head(command.outputBytes);
  const stderr = new Head(command.outputBytes);
  const said = new Head(RESULT_BYTES);
  const abort = () => void link.send('K');
  const within = command.timeoutMs + GRACE_MS + (ahead?.withinMs ?? 0);
  let failed = false;
  let over = false;
  try {
    const end = await link.ask<Buffer>(true, Math.min(within, LONGEST_MS), async (done) => {
      const input = command.stdin ?? new Uint8Array(0);
      command.signal?.addEventListener('abort', abort, { once: true });
      const send = async (): Promise<void> => {
        await ahead?.send();
        for (let at = 0; at < input.length; at += CHUNK_BYTES)
          await link.send('I', input.subarray(at, at + CHUNK_BYTES));
        await link.send(start.type, u32(command.timeoutMs), u32(command.outputBytes), ...start.parts);
        // what came before the start had nothing to end
        if (!over && (failed || command.signal?.aborted)) abort();
      };
      void send();
      return (frame) => {
        if (frame.type === 'x' || frame.type === 'w') {
          if (failed || !ahead?.take(frame)) return;
          failed = true;
          abort();
        } else if (frame.type === 'o') stdout.take(frame.body);
        else if (frame.type === 'e') stderr.take(frame.body);
        else if (frame.type === 'r') said.take(frame.body);
        else if (frame.type === 'z') {
          over = true;
          done(frame.body);
        }
      };
    });
    command.signal?.throwIfAborted();
    if (failed) return null;
    if (CAUSES[end[0] ?? 0] === 'no-room') throw noRoom(end.readInt32LE(1), stderr.content());
    const candidate = end.readUInt32LE(39);
    return {
      result: resultOf(end, stdout, stderr),
      said: said.content(),
      // a wait status: the low seven bits are the signal
      candidateSignal: candidate !== 0 && (candidate & 0x7f) !== 0 ? candidate & 0x7f : null,
    };
  } finally {
    command.signal?.removeEventListener('abort', abort);
  }
}

/** Of phase `start`: nothing of an action's was running, so that the same again is no doing of its either. */
function noRoom(errno: number, said: Buffer): BoxLost {
  const code = errnoName(errno);
  const last = said.toString('utf8').trim().split('\n').at(-1);
  const told = `the machine could not start a process in the box: ${code}${last ? `, ${last}` : ''}`;
  return new BoxLost('start', 'engine', `start:${code}`, told);
}

function resultOf(end: Buffer, stdout: Head, stderr: Head): CommandResult {
  const cause = CAUSES[end[0] ?? 0] ?? 'exit';
  if (cause === 'aborted' || cause === 'no-room') throw new Error('the command was ended without being asked to');
  const value = end.readInt32LE(1);
  return {
    cause,
    exitCode: cause === 'exit' ? value : cause === 'signal' ? -value : -1,
    launchError: cause === 'launch' ? { code: errnoName(value), message: `cannot start: ${errnoName(value)}` } : null,
    stdout: stdout.content(),
    stderr: stderr.content(),
    stdoutBytes: Number(end.readBigUInt64LE(5)),
    stderrBytes: Number(end.readBigUInt64LE(13)),
    oomKilled: end[29] === 1,
    pidsExceeded: end[30] === 1,
    diskFull: end[43] === 1,
    wallMs: Number(end.readBigUInt64LE(21)) / 1000,
  };
}
