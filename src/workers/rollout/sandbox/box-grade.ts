// A grade in a box: everything of before is killed and wiped, the harness and the check's files are laid, the nursery is
// started where there is none, and forks the judge (infra/runner/README.md, `N` and `G`). One trip to the box and back.

import { randomBytes } from 'node:crypto';
import { BoxLost, type Check, type Grade } from '../../../shared/sandbox.ts';
import { type Ahead, type Link, runToEnd } from './box-run.ts';
import { placePath } from './box-text.ts';
import { byteStrings, type Frame } from './channel.ts';
import { batchFrames, type FileOnWire, type LayFault, layFault } from './file-batch.ts';
import { commandOf, gradeOf, type PlacedFile, placedFiles, TASK_BYTES, taskFor, type Users } from './grading.ts';
import { type Harness, nurseryCommand, nurseryEnvironment } from './harness.ts';
import { checkLaunch, errnoName, notStarted } from './launch.ts';

/** Reset, files and the answers to both. */
const PREPARE_MS = 100_000;

export interface GradePlace {
  harness: Harness;
  users: Users;
  imageId: string;
  /** PATH of the image. */
  path: string;
  /** What lies in /farm: asked for once an image, to keep the bytecode. */
  readFarm(): Promise<Map<string, Buffer>>;
  /** Whether the harness has been laid into this box; set here. */
  laid: boolean;
  /** Whether nothing was written or run in it since it was made or reset; unset here. */
  clean: boolean;
}

export async function gradeInBox(link: Link, check: Check, place: GradePlace, recycled: boolean): Promise<Grade> {
  check.signal?.throwIfAborted();
  const command = commandOf(check);
  const launch = checkLaunch(command, '/work', place.path);
  const refused = (code: string, message: string): Grade => ({
    ...notStarted(code, message),
    status: 'graded',
    level: check.kind,
    passed: false,
    why: message,
    candidateSignal: null,
  });
  if (launch.status === 'refused') return refused(launch.code, launch.message);
  const token = randomBytes(16).toString('hex');
  const task = taskFor(check, place.users, place.path, token);
  if (task.length > TASK_BYTES)
    return refused(
      'E2BIG',
      `names of files, functions and classes make the grade's task ${task.length} bytes long; allowed: ${TASK_BYTES}`,
    );

  const files: PlacedFile[] = placedFiles(check);
  const wired: FileOnWire[] = [];
  for (const file of files) {
    const at = placePath(file.path);
    if (at.status !== 'inside')
      return notLaid(file, { reason: at.status === 'escape' ? 'escape' : 'other', message: at.message });
    wired.push({ place: file.place, path: at.bytes, content: file.content });
  }
  const key = `${place.imageId} ${check.interpreter}`;
  const known = place.harness.filesFor(key);
  const harness: FileOnWire[] = place.laid
    ? []
    : [...known.files].map(([path, content]) => ({ place: 'farm', path: Buffer.from(path), content }));
  const nursery = [
    byteStrings(nurseryCommand(check.interpreter, check.warm).map((word) => Buffer.from(word))),
    byteStrings(nurseryEnvironment(place.path).map((pair) => Buffer.from(pair))),
  ];
  const prepared = new Preparation(link, place.clean, harness, nursery, wired);
  place.clean = false;
  const start = { type: 'G' as const, parts: [Buffer.of(check.warm || recycled ? 1 : 0), ...nursery, task] };
  const ended = await runToEnd(link, command, start, prepared);
  if (prepared.lost !== null) throw prepared.lost;
  place.laid = true;
  const { fault } = prepared;
  if (fault !== null) return notLaid(files[fault.index] as PlacedFile, fault);
  if (ended === null) throw new Error('a grade came to nothing without a reason');
  if (ended.result.cause === 'launch') {
    const said = ended.result.stderr.toString('utf8').trim().split('\n').at(-1) ?? '';
    const { code } = ended.result.launchError ?? { code: errnoName(0) };
    return refused(code, `${check.interpreter} did not start the check: ${code}${said === '' ? '' : `, ${said}`}`);
  }
  if (!known.compiled) place.harness.learn(key, await place.readFarm());
  return gradeOf(check, ended.result, ended.said, token, ended.candidateSignal);
}

/** Sent in one go, with the grade right behind: the interpreter starts while the check's files are written. */
class Preparation implements Ahead {
  readonly withinMs = PREPARE_MS;
  /** Of the check's files. */
  fault: LayFault | null = null;
  lost: BoxLost | null = null;
  readonly #link: Link;
  readonly #clean: boolean;
  readonly #harness: readonly FileOnWire[];
  readonly #nursery: readonly Uint8Array[];
  readonly #files: readonly FileOnWire[];
  #harnessAwaited: boolean;

  constructor(
    link: Link,
    clean: boolean,
    harness: readonly FileOnWire[],
    nursery: readonly Uint8Array[],
    files: readonly FileOnWire[],
  ) {
    this.#link = link;
    this.#clean = clean;
    this.#harness = harness;
    this.#nursery = nursery;
    this.#files = files;
    this.#harnessAwaited = harness.length > 0;
  }

  async send(): Promise<void> {
    const { send } = this.#link;
    if (!this.#clean) await send('X');
    if (this.#harnessAwaited) for (const body of batchFrames(this.#harness)) await send('W', body);
    await send('N', ...this.#nursery);
    for (const body of batchFrames(this.#files)) await send('W', body);
  }

  take({ type, body }: Frame): boolean {
    if (type === 'x') this.lost = resetFault(body);
    else if (this.#harnessAwaited) {
      this.#harnessAwaited = false;
      const fault = layFault(body);
      if (fault !== null)
        this.lost = new BoxLost('run', 'engine', 'harness', `the harness cannot be laid: ${fault.message}`);
    } else this.fault = layFault(body);
    return this.lost !== null || this.fault !== null;
  }
}

/** The runner's answer to a reset. */
export function resetFault(answer: Buffer): BoxLost | null {
  const survivors = answer.readUInt32LE(0);
  if (survivors === 0) return null;
  const what = answer.subarray(4).toString('latin1');
  return new BoxLost('run', 'action', `reset:${what}`, `${survivors} left in ${what} after a reset`);
}

function notLaid(file: PlacedFile, fault: Pick<LayFault, 'reason' | 'message'>): Grade {
  return { status: 'not_laid', hidden: file.hidden, path: file.path, reason: fault.reason, message: fault.message };
}
