// A grade as the runner and the harness speak of it: what the nursery is told, what the judge's last line says, and which
// of the two places each file of a check lies in.

import { z } from 'zod';
import type { Check, Command, CommandResult, GradeResult } from '../../../shared/sandbox.ts';
import { commandEnvironment } from './launch.ts';

export type Place = 'work' | 'judge' | 'farm';
export const PLACES: readonly Place[] = ['work', 'judge', 'farm'];

export interface PlacedFile {
  place: Place;
  path: string;
  content: Uint8Array;
  hidden: boolean;
}

export interface Users {
  judge: number;
  candidate: number;
}

/** What the runner takes of a task for the nursery (infra/runner/nursery.c). */
export const TASK_BYTES = 3 * 1024 * 1024;
/** Of the judge's result pipe; the runner keeps no more. */
const RESULT_BYTES = 64 * 1024;

const outcomeSchema = z.object({
  completed: z.boolean(),
  exit: z.int(),
  token: z.string(),
  why: z.string().nullish(),
});

/** Apart, the judge has a copy of everything as data, and the candidate none of the check's Python. */
export function placedFiles(check: Check): PlacedFile[] {
  const placed: PlacedFile[] = [];
  const lay = (place: Place, path: string, content: Uint8Array, hidden: boolean) =>
    placed.push({ place, path, content, hidden });
  const shown = shownFiles(check);
  for (const [path, content] of shown) lay('work', path, content, false);
  const withheld = (path: string): boolean => path.endsWith('.py') || check.task.withheld.includes(path);
  for (const [path, content] of check.hidden)
    if (check.kind !== 'apart' || !withheld(path)) lay('work', path, content, true);
  if (check.kind !== 'apart') return placed;
  for (const [path, content] of [...shown, ...check.hidden]) lay('judge', path, content, check.hidden.has(path));
  return placed;
}

/** What a program that judges in the candidate's process reads by itself, whoever put it there. */
const START_UP =
  /(^|\/)(conftest\.py|\.?pytest\.ini|tox\.ini|setup\.cfg|pyproject\.toml|(site|user)customize\.py|[^/]*\.pth)$/;

/** The agent's state of the files without what would take part in judging. */
export function shownFiles(
  check: Pick<Check, 'kind' | 'files' | 'hidden' | 'own' | 'module'>,
): Map<string, Uint8Array> {
  const own = new Set(check.own);
  const files = clearOf(check.files, [...check.hidden.keys()], own);
  if (check.kind === 'apart') return files;
  const module = check.module?.split('.')[0];
  const judges = (path: string): boolean =>
    START_UP.test(path) || path === `${module}.py` || path.startsWith(`${module}/`);
  return new Map([...files].filter(([path]) => own.has(path) || !judges(path)));
}

/** Python would take it for the bytecode of a hidden file, some of it without a look at that file. */
const CACHED = /(^|\/)__pycache__\//;

/** Hidden files win: what stands where they must lie, or their folders, gives way, and so does what is not the task's
 *  own and would be imported in the place of one of them. */
export function clearOf<T>(
  files: ReadonlyMap<string, T>,
  hidden: readonly string[],
  own: ReadonlySet<string>,
): Map<string, T> {
  const inTheWay = (path: string): boolean =>
    hidden.some((one) => one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`));
  const modules = hidden.flatMap((path) => (path.endsWith('.py') ? [path.slice(0, -'.py'.length)] : []));
  const shadows = (path: string): boolean =>
    !own.has(path) &&
    modules.some((one) => path.startsWith(`${one}/`) || (path.startsWith(`${one}.`) && path.endsWith('.so')));
  return new Map([...files].filter(([path]) => !CACHED.test(path) && !inTheWay(path) && !shadows(path)));
}

/** The command that stands for this check. */
export function commandOf(check: Check): Command {
  return {
    argv: [check.interpreter, ...(check.module === null ? [] : ['-m']), ...check.argv],
    timeoutMs: check.timeoutMs,
    outputBytes: check.outputBytes,
    ...(check.signal === undefined ? {} : { signal: check.signal }),
  };
}

/** The message that the runner hands to the nursery unread. */
export function taskFor(check: Check, users: Users, path: string, token: string): Buffer {
  const user = (id: number) => ({ uid: id, gid: id });
  return Buffer.from(
    JSON.stringify({
      mode: check.kind,
      check: check.file,
      module: check.module,
      argv: check.argv,
      interpreter: check.interpreter,
      hidden: [...check.hidden.keys()],
      own: check.own,
      ...check.task,
      files: [...new Set([...check.files.keys(), ...check.hidden.keys()])],
      judge: user(users.judge),
      candidate: user(users.candidate),
      env: commandEnvironment(commandOf(check), '/work', path),
      token,
    }),
  );
}

/** A grade passes only if the judge ended by itself with 0 and said, as its last word, that the check was completed. */
export function gradeOf(
  check: Check,
  end: CommandResult,
  said: Buffer,
  token: string,
  candidateSignal: number | null,
): GradeResult {
  const outcome = said.length < RESULT_BYTES ? outcomeIn(said, token) : null;
  const passed = end.cause === 'exit' && end.exitCode === 0 && outcome?.completed === true && outcome.exit === 0;
  const why = passed ? null : (outcome?.why ?? (outcome === null ? 'the check did not come to its end' : null));
  return { ...end, status: 'graded', level: check.kind, passed, why, candidateSignal };
}

function outcomeIn(said: Buffer, token: string): z.infer<typeof outcomeSchema> | null {
  try {
    const outcome = outcomeSchema.parse(JSON.parse(said.toString('utf8')));
    return outcome.token === token ? outcome : null;
  } catch {
    return null;
  }
}
