// A box in a container, spoken to through its runner. One request at a time; a heartbeat keeps the runner alive and
// tells us whether it is. When the channel breaks, the driver's post-mortem says whose doing it was.

import { performance } from 'node:perf_hooks';
import {
  type Box,
  BoxLost,
  type Check,
  type Command,
  type CommandResult,
  type Grade,
  type Listing,
} from '../../../shared/sandbox.ts';
import { type GradePlace, gradeInBox, resetFault } from './box-grade.ts';
import { type Link, runToEnd } from './box-run.ts';
import { byCodePoint, decodeText, placePath } from './box-text.ts';
import { byteStrings, type Channel, type Frame, u32, u64 } from './channel.ts';
import { batchFrames, type FileOnWire, type LayFault, layFault } from './file-batch.ts';
import { PLACES, type Place, type Users } from './grading.ts';
import type { Harness } from './harness.ts';
import { checkLaunch, notStarted } from './launch.ts';

const HEARTBEAT_MS = 2_500;
/** Heartbeats without any sign of the runner before the box is given up. */
const MISSED = 10;
const FILES_MS = 60_000;
const RESET_MS = 40_000;
const FARM_CAPS = { maxBytes: 8 * 1024 * 1024, maxEntries: 500 };

export interface BoxParts {
  imageId: string;
  runnerHash: string;
  startMs: number;
  /** PATH of the image, for commands. */
  path: string;
  users: Users;
  harness: Harness;
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
  readonly #link: Link;
  readonly #gradePlace: GradePlace;
  readonly #heartbeat: NodeJS.Timeout;
  #request: Request | null = null;
  #queue: Promise<unknown> = Promise.resolve();
  #lost: Promise<BoxLost> | null = null;
  #closing: Promise<void> | null = null;
  #missed = 0;
  /** When it was last as new: what befell it before is nobody's any more. */
  sinceMs = Date.now();
  #lastComplaint = '';

  constructor(channel: Channel, parts: BoxParts) {
    this.#channel = channel;
    this.#parts = parts;
    this.imageId = parts.imageId;
    this.runnerHash = parts.runnerHash;
    this.startMs = parts.startMs;
    this.#link = {
      ask: (running, withinMs, begin) => this.#ask(running, withinMs, begin),
      send: (type, ...given) => channel.send(type, ...given),
    };
    this.#gradePlace = {
      harness: parts.harness,
      users: parts.users,
      imageId: parts.imageId,
      path: parts.path,
      readFarm: async () => (await this.#list('farm', FARM_CAPS)).files,
      laid: false,
      clean: true,
    };
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
    this.#gradePlace.clean = false;
    const parts = [byteStrings(check.launch.argv), byteStrings(check.launch.env)];
    return (await runToEnd(this.#link, command, { type: 'R', parts })).result;
  }

  write(files: ReadonlyMap<string, Uint8Array>): ReturnType<Box['write']> {
    return this.#oneByOne(async () => {
      this.#gradePlace.clean = false;
      const paths = [...files.keys()];
      const wired: FileOnWire[] = [];
      for (const [path, content] of files) {
        const at = placePath(path);
        if (at.status !== 'inside')
          return { ok: false, path, reason: at.status === 'escape' ? 'escape' : 'other', message: at.message };
        wired.push({ place: 'work', path: at.bytes, content });
      }
      const fault = await this.#ask<LayFault | null>(false, FILES_MS, async (done) => {
        const send = async () => {
          for (const body of batchFrames(wired)) await this.#channel.send('W', body);
        };
        void send();
        return (frame) => {
          if (frame.type === 'w') done(layFault(frame.body));
        };
      });
      if (fault === null) return { ok: true };
      return { ok: false, path: paths[fault.index] ?? '', reason: fault.reason, message: fault.message };
    });
  }

  grade(check: Check, recycled = false): Promise<Grade> {
    return this.#oneByOne(() => gradeInBox(this.#link, check, this.#gradePlace, recycled));
  }

  read(caps: { maxBytes: number; maxEntries: number }): Promise<Listing> {
    return this.#oneByOne(() => this.#list('work', caps));
  }

  async #list(place: Place, caps: { maxBytes: number; maxEntries: number }): Promise<Listing> {
    const found: [string, Buffer][] = [];
    let path = '';
    let chunks: Buffer[] = [];
    const end = await this.#ask<Buffer>(false, FILES_MS, async (done) => {
      void this.#channel.send('L', u64(caps.maxBytes), u32(caps.maxEntries), Buffer.of(PLACES.indexOf(place)));
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
  }

  reset(): Promise<void> {
    return this.#oneByOne(async () => {
      const answer = await this.#ask<Buffer>(false, RESET_MS, async (done) => {
        void this.#channel.send('X');
        return (frame) => {
          if (frame.type === 'x') done(frame.body);
        };
      });
      const fault = resetFault(answer);
      if (fault !== null) throw fault;
      this.#gradePlace.clean = true;
      this.sinceMs = Date.now();
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
