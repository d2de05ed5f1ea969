// A grade in a box: everything of before is killed and wiped, the harness and the check's files are laid, the nursery is
// started where there is none, and forks the judge (infra/runner/README.md, `N` and `G`).

import { randomBytes } from 'node:crypto';
import { BoxLost, type Check, type Grade } from '../../../shared/sandbox.ts';
import { type Link, runToEnd } from './box-run.ts';
import { placePath } from './box-text.ts';
import { byteStrings } from './channel.ts';
import { batchFrames, type FileOnWire, type LayFault, layFault } from './file-batch.ts';
import { commandOf, gradeOf, type PlacedFile, placedFiles, taskFor, type Users } from './grading.ts';
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
}

export async function gradeInBox(link: Link, check: Check, place: GradePlace): Promise<Grade> {
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
  const fault = await prepare(link, harness, nursery, wired);
  place.laid = true;
  if (fault !== null) return notLaid(files[fault.index] as PlacedFile, fault);

  const token = randomBytes(16).toString('hex');
  const task = taskFor(check, place.users, place.path, token);
  const ended = await runToEnd(link, command, {
    type: 'G',
    parts: [Buffer.of(check.warm ? 1 : 0), ...nursery, task],
  });
  if (ended.result.cause === 'launch') {
    const said = ended.result.stderr.toString('utf8').trim().split('\n').at(-1) ?? '';
    const { code } = ended.result.launchError ?? { code: errnoName(0) };
    return refused(code, `${check.interpreter} did not start the check: ${code}${said === '' ? '' : `, ${said}`}`);
  }
  if (!known.compiled) place.harness.learn(key, await place.readFarm());
  return gradeOf(check, ended.result, ended.said, token, ended.candidateSignal);
}

/** Sent in one go: the interpreter starts while the check's files are written. The first fault among those is the answer. */
async function prepare(
  link: Link,
  harness: readonly FileOnWire[],
  nursery: readonly Uint8Array[],
  files: readonly FileOnWire[],
): Promise<LayFault | null> {
  const answer = await link.ask<LayFault | BoxLost | null>(false, PREPARE_MS, async (done) => {
    let laidHarness = harness.length === 0;
    const send = async (): Promise<void> => {
      await link.send('X');
      if (harness.length > 0) for (const body of batchFrames(harness)) await link.send('W', body);
      await link.send('N', ...nursery);
      for (const body of batchFrames(files)) await link.send('W', body);
    };
    void send();
    let failed: BoxLost | null = null;
    return ({ type, body }) => {
      if (type === 'x') failed = resetFault(body);
      if (type !== 'w') return;
      const fault = layFault(body);
      if (!laidHarness) {
        laidHarness = true;
        if (fault !== null)
          failed ??= new BoxLost('run', 'engine', 'harness', `the harness cannot be laid: ${fault.message}`);
        return;
      }
      done(failed ?? fault);
    };
  });
  if (answer instanceof BoxLost) throw answer;
  return answer;
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
