// A box in a container, spoken to through its runner. One request at a time; a heartbeat keeps the runner alive and
// tells us whether it is. When the channel breaks, the driver's post-mortem says whose doing it was.

import { performance } from 'node:perf_hooks';
import { type Box, BoxLost, type Command, type CommandResult, type Listing } from '../../../shared/sandbox.ts';
import { byCodePoint, decodeText, placePath } from './box-text.ts';
import { byteStrings, type Channel, type Frame, u32, u64 } from './channel.ts';
import { checkLaunch, errnoName, Head, notStarted } from './launch.ts';

const HEARTBEAT_MS = 2_500;
/** Heartbeats without any sign of the runner before the box is given up. */
const MISSED = 10;
/** On top of a command's own time: kill, reap, rest of the output. */
const RUN_GRACE_MS = 20_000;
/** What a timer of Node can hold. */
const LONGEST_MS = 2 ** 31 - 1;
const FILES_MS = 60_000;
const RESET_MS = 40_000;
const CHUNK_BYTES = 64 * 1024;

const CAUSES = ['exit', 'signal', 'timeout', 'launch', 'aborted'] as const;

export interface BoxParts {
  imageId: string;
  runnerHash: string;
  startMs: number;
  /** PATH of the image, for commands. */
  path: string;
  /** Asks the engine why the box is gone. */
  judge(running: boolean, why: string): Promise<BoxLost>;
  /** Kills the container and waits until it is removed; does not throw. */
  end(): Promise<void>;
}

interface Request {
  running: boolean;
  frame(frame: Frame): void;
  fail(error: unknown): void;
}

export class RunnerBox implements Box {
  readonly imageId: string;
  readonly runnerHash: string;
  readonly isolation = 'fresh';
  readonly startMs: number;
  readonly #channel: Channel;
  readonly #parts: BoxParts;
  readonly #heartbeat: NodeJS.Timeout;
  #request: Request | null = null;
  #queue: Promise<unknown> = Promise.resolve();
  #lost: Promise<BoxLost> | null = null;
  #closing: Promise<void> | null = null;
  #missed = 0;
  #lastComplaint = '';

  constructor(channel: Channel, parts: BoxParts) {
    this.#channel = channel;
    this.#parts = parts;
    this.imageId = parts.imageId;
    this.runnerHash = parts.runnerHash;
    this.startMs = parts.startMs;
    channel.onFrame = (frame) => this.#take(frame);
    channel.onClosed = (why) => this.#lose(why);
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  /** The runner has been heard lately: what a neighbour is asked when a box has died. */
  get well(): boolean {
    return this.#lost === null && this.#missed <= 2;
  }

  run(command: Command): Promise<CommandResult> {
    return this.#oneByOne(() => this.#run(command));
  }

  async #run(command: Command): Promise<CommandResult> {
    command.signal?.throwIfAborted();
    const check = checkLaunch(command, '/work', this.#parts.path);
    if (check.status === 'refused') return notStarted(check.code, check.message);
    const stdout = new Head(command.outputBytes);
    const stderr = new Head(command.outputBytes);
    const abort = () => void this.#channel.send('K');
    try {
      const end = await this.#ask<Buffer>(
        true,
        Math.min(command.timeoutMs + RUN_GRACE_MS, LONGEST_MS),
        async (done) => {
          const input = command.stdin ?? new Uint8Array(0);
          const { argv, env } = check.launch;
          command.signal?.addEventListener('abort', abort, { once: true });
          for (let at = 0; at < input.length; at += CHUNK_BYTES)
            await this.#channel.send('I', input.subarray(at, at + CHUNK_BYTES));
          const head = Buffer.concat([u32(command.timeoutMs), u32(command.outputBytes)]);
          void this.#channel.send('R', head, byteStrings(argv), byteStrings(env));
          return (frame) => {
            if (frame.type === 'o') stdout.take(frame.body);
            else if (frame.type === 'e') stderr.take(frame.body);
            else if (frame.type === 'z') done(frame.body);
          };
        },
      );
      command.signal?.throwIfAborted();
      const cause = CAUSES[end[0] ?? 0] ?? 'exit';
      if (cause === 'aborted') throw new Error('the command was ended without being asked to');
      const value = end.readInt32LE(1);
      return {
        cause,
        exitCode: cause === 'exit' ? value : cause === 'signal' ? -value : -1,
        launchError:
          cause === 'launch' ? { code: errnoName(value), message: `cannot start: ${errnoName(value)}` } : null,
        stdout: stdout.content(),
        stderr: stderr.content(),
        stdoutBytes: Number(end.readBigUInt64LE(5)),
        stderrBytes: Number(end.readBigUInt64LE(13)),
        oomKilled: end[29] === 1,
        pidsExceeded: end[30] === 1,
        wallMs: Number(end.readBigUInt64LE(21)) / 1000,
      };
    } finally {
      command.signal?.removeEventListener('abort', abort);
    }
  }

  write(files: ReadonlyMap<string, Uint8Array>): ReturnType<Box['write']> {
    return this.#oneByOne(async () => {
      const placed = [...files].map(([path, content]) => ({ path, content, place: placePath(path) }));
      for (const { path, place } of placed)
        if (place.status !== 'inside')
          return { ok: false, path, reason: place.status === 'escape' ? 'escape' : 'other', message: place.message };
      for (const { path, content, place } of placed) {
        if (place.status !== 'inside') continue;
        const answer = await this.#writeOne(place.bytes, content);
        const errno = errnoName(answer.readUInt32LE(4));
        if (answer.readUInt32LE(0) === 1)
          return { ok: false, path, reason: 'escape', message: 'a link stands in its way' };
        if (answer.readUInt32LE(0) !== 0)
          return {
            ok: false,
            path,
            reason: errno === 'ENOSPC' || errno === 'EDQUOT' ? 'disk' : 'other',
            message: errno,
          };
      }
      return { ok: true };
    });
  }

  #writeOne(path: Buffer, content: Uint8Array): Promise<Buffer> {
    return this.#ask<Buffer>(false, FILES_MS, async (done) => {
      const length = u32(path.length).subarray(0, 2);
      const send = async () => {
        for (let at = 0; at === 0 || at < content.length; at += CHUNK_BYTES) {
          const flags = (at === 0 ? 1 : 0) | (at + CHUNK_BYTES >= content.length ? 2 : 0);
          const chunk = content.subarray(at, at + CHUNK_BYTES);
          if (at === 0) await this.#channel.send('W', Buffer.of(flags), length, path, chunk);
          else await this.#channel.send('W', Buffer.of(flags, 0, 0), chunk);
        }
      };
      void send();
      return (frame) => {
        if (frame.type === 'w') done(frame.body);
      };
    });
  }

  read(caps: { maxBytes: number; maxEntries: number }): Promise<Listing> {
    return this.#oneByOne(async () => {
      const found: [string, Buffer][] = [];
      let path = '';
      let chunks: Buffer[] = [];
      const end = await this.#ask<Buffer>(false, FILES_MS, async (done) => {
        void this.#channel.send('L', u64(caps.maxBytes), u32(caps.maxEntries));
        return ({ type, body }) => {
          if (type === 'l') done(body);
          if (type !== 'f') return;
          const length = body.readUInt16LE(1);
          if ((body[0]! & 1) !== 0) {
            path = decodeText(body.subarray(3, 3 + length));
            chunks = [];
          }
          chunks.push(body.subarray(3 + length));
          if ((body[0]! & 2) !== 0) found.push([path, Buffer.concat(chunks)]);
        };
      });
      found.sort(([a], [b]) => byCodePoint(a, b));
      return { files: new Map(found), truncated: end.readUInt32LE(0) !== 0 };
    });
  }

  reset(): Promise<void> {
    return this.#oneByOne(async () => {
      const answer = await this.#ask<Buffer>(false, RESET_MS, async (done) => {
        void this.#channel.send('X');
        return (frame) => {
          if (frame.type === 'x') done(frame.body);
        };
      });
      const survivors = answer.readUInt32LE(0);
      if (survivors === 0) return;
      const what = answer.subarray(4).toString('latin1');
      throw new BoxLost('run', 'action', `reset:${what}`, `${survivors} left in ${what} after a reset`);
    });
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearInterval(this.#heartbeat);
      this.#request?.fail(new BoxLost('run', 'engine', 'closed', 'the box was closed meanwhile'));
      void this.#channel.send('Q');
      await this.#parts.end();
      this.#channel.destroy();
    })();
    return this.#closing;
  }

  #oneByOne<T>(work: () => Promise<T>): Promise<T> {
    const next = this.#queue.then(async () => {
      if (this.#lost !== null) throw await this.#lost;
      if (this.#closing !== null) throw new BoxLost('run', 'engine', 'closed', 'the box is closed');
      return work();
    });
    this.#queue = next.catch(() => {});
    return next;
  }

  /** One request and its answer, within `withinMs`. `begin` sends and returns what takes the frames. */
  #ask<T>(
    running: boolean,
    withinMs: number,
    begin: (done: (value: T) => void) => Promise<(frame: Frame) => void>,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(() => this.#lose('no answer in time'), withinMs);
      const settle = () => {
        clearTimeout(timer);
        this.#request = null;
      };
      const request: Request = {
        running,
        frame: () => {},
        fail: (error) => {
          settle();
          reject(error);
        },
      };
      this.#request = request;
      const done = (value: T) => {
        settle();
        resolve(value);
      };
      begin(done).then((frame) => {
        request.frame = frame;
      }, request.fail);
    });
  }

  #take(frame: Frame): void {
    this.#missed = 0;
    if (frame.type === '!') this.#lastComplaint = frame.body.toString('utf8');
    else if (frame.type !== 'p') this.#request?.frame(frame);
  }

  #beat(): void {
    this.#missed += 1;
    if (this.#missed > MISSED) this.#lose('the runner is silent');
    else void this.#channel.send('P', u64(performance.now()));
  }

  #lose(why: string): void {
    if (this.#lost !== null || this.#closing !== null) return;
    clearInterval(this.#heartbeat);
    const request = this.#request;
    this.#lost = this.#parts.judge(request?.running ?? false, this.#lastComplaint || this.#channel.lastWords || why);
    void this.#lost.then((lost) => request?.fail(lost));
  }
}
