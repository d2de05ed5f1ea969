// `code-task`: edit a small repository until its check passes. crucible's environment with the check as data: a command
// that must exit 0 over the files and the check's own hidden files, which win over every edit. No agent's process ever
// runs before it: edits are data. How a check is judged is read off the task (check-shape.ts): apart, in process with a
// proof that it came to its end, or by its exit status alone; the certificate says which (docs/grades.md).

import {
  type Environment,
  type EnvironmentContext,
  EnvironmentError,
  type StepResult,
} from '../../../shared/environment.ts';
import { parseJson } from '../../../shared/json/json.ts';
import { compareCodePoints, isMap, mapOf, type Value, type ValueMap } from '../../../shared/json/value.ts';
import type { Diagnostic } from '../../../shared/outcome.ts';
import { surrogateFault } from '../../../shared/python/text.ts';
import { layFiles, safePath } from '../../../shared/safe-path.ts';
import {
  type Box,
  type BoxLost,
  type Check,
  type Command,
  GRADE_LEVELS,
  type GradeLevel,
} from '../../../shared/sandbox.ts';
import { checkShape } from '../../../shared/spec/check-shape.ts';
import { ADDED_NAME_BYTES, nameBytes } from '../../../shared/spec/file-names.ts';
import { clearOf } from '../sandbox/grading.ts';
import { diagnosticsOf, stepLimit } from './box-command.ts';
import { editsOf } from './edits.ts';
import { fencedBlock } from './fenced-block.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { filesDigest } from './state-digest.ts';
import { taskFacts } from './task-names.ts';

const MISS = -0.1;
/** Edits may add this much to the task's own files: each step's observation repeats them all. */
const GROWTH_BYTES = 16 * 1024 * 1024;

export class CodeTaskEnvironment implements Environment {
  readonly name = 'code-task';
  grade: GradeLevel;
  private readonly settings: ValueMap;
  private readonly context: EnvironmentContext;
  private current: ValueMap = new Map();
  private passed = false;

  constructor(config: ValueMap, context: EnvironmentContext) {
    this.settings = config;
    this.context = context;
    const check = config.get('check') as ValueMap;
    this.grade = check.get('kind') as GradeLevel;
  }

  get warm(): 'python3' | null {
    const check = this.settings.get('check') as ValueMap;
    return check.get('warm') === 'python3' && this.grade !== 'exit' ? 'python3' : null;
  }

  async reset(_seed: Value): Promise<Value> {
    this.current = new Map(this.initial());
    this.passed = false;
    return mapOf({ task: this.settings.get('task') ?? null, files: new Map(this.current) });
  }

  async step(action: Value): Promise<StepResult> {
    const edits = editsOf(action);
    const next: ValueMap = new Map(this.current);
    if (edits.ok) for (const [path, content] of edits.edits) next.set(path, content);
    const fault = edits.ok ? this.refusal(next) : edits.error;
    if (fault !== null) return missedStep(MISS, fault, { info: { passed: this.passed } });
    this.current = next;
    const graded = await this.gradeCurrent();
    this.passed = graded.passed;
    return {
      observation: mapOf({ files: new Map(this.current) }),
      reward: this.passed ? 1 : MISS,
      done: this.passed,
      info: mapOf({ passed: this.passed }),
      diagnostics: graded.diagnostics,
    };
  }

  lostBox(lost: BoxLost): StepResult {
    return lostBoxStep(MISS, lost, { passed: false });
  }

  digest(): string {
    return filesDigest(this.current, this.passed);
  }

  config(): ValueMap {
    return this.settings;
  }

  /** A JSON object of path and text, else the new content of the task's first file. */
  parseCompletion(text: string): Value {
    const block = fencedBlock(text);
    try {
      const value = parseJson(block);
      if (isMap(value) && [...value.values()].every((content) => typeof content === 'string')) return value;
    } catch {
      // no JSON: the file itself
    }
    return mapOf({ [[...this.initial().keys()][0] as string]: block });
  }

  private async gradeCurrent(): Promise<Graded> {
    const check = this.settings.get('check') as ValueMap;
    // In path order, as a saved file has them: two spellings of one path must not depend on who wrote first.
    const laid = layFiles([...this.current].sort(([a], [b]) => compareCodePoints(a, b)));
    if (!laid.ok) return { passed: false, diagnostics: laid.escape ? ['escape'] : [] };
    const own = layFiles(check.get('files') as ValueMap);
    if (!own.ok) throw new EnvironmentError(`the check's own files cannot be laid: ${own.error}`);
    const owned = [...this.initial().keys()].flatMap(pathOf);
    const box = await this.context.box();
    const shape = checkShape(check);
    if (check.get('kind') === 'exit' || shape.level === 'exit') {
      const files = clearOf(laid.files, [...own.files.keys()], new Set(owned));
      return this.gradeByExit(box, check, files, own.files);
    }
    const asked: Check = {
      kind: check.get('kind') as 'apart' | 'in-process',
      interpreter: shape.interpreter,
      file: shape.file,
      module: shape.module,
      argv: shape.argv,
      files: laid.files,
      hidden: own.files,
      own: owned,
      task: taskFacts(this.statement(), this.initial() as Map<string, string>, own.files),
      warm: check.get('warm') === 'python3',
      ...this.bounds(check),
    };
    const grade = await box.grade(asked);
    if (grade.status === 'not_laid')
      return this.notLaid(grade, grade.hidden, async (files) => {
        // it is laid before it is judged: the answer to that is not wanted
        const untouched = await box.grade({ ...asked, files, timeoutMs: 1 });
        return untouched.status === 'graded';
      });
    this.lower(grade.level);
    if (grade.cause === 'launch') throw new EnvironmentError(grade.launchError?.message ?? 'the check was not started');
    const diagnostics = diagnosticsOf(grade);
    if (grade.candidateSignal !== null && !diagnostics.includes('signal')) diagnostics.push('signal');
    return { passed: grade.passed, diagnostics };
  }

  private async gradeByExit(box: Box, check: ValueMap, files: Files, hidden: Files): Promise<Graded> {
    await box.reset();
    const written = await box.write(new Map([...files, ...hidden]));
    if (!written.ok)
      return this.notLaid(written, hidden.has(written.path), async (untouched) => {
        await box.reset();
        const cleared = clearOf(untouched, [...hidden.keys()], new Set(untouched.keys()));
        return (await box.write(new Map([...cleared, ...hidden]))).ok;
      });
    const argv = check.get('command') as string[];
    const result = await box.run({ argv, ...this.bounds(check) });
    this.lower('exit');
    const imageAtFault = box.isolation !== 'subprocess' && !couldBeTheAgents(argv[0] as string, hidden);
    if (result.cause === 'launch' && imageAtFault)
      throw new EnvironmentError(`the check cannot be started: ${argv[0]}: ${result.launchError?.code ?? 'unknown'}`);
    return { passed: result.cause === 'exit' && result.exitCode === 0, diagnostics: diagnosticsOf(result) };
  }

  private bounds(check: ValueMap): Pick<Command, 'timeoutMs' | 'outputBytes' | 'signal'> {
    const { ms } = stepLimit(this.context, check.get('timeout'));
    return { timeoutMs: ms, outputBytes: this.context.outputBytes, signal: this.context.signal };
  }

  /** An episode's certificate names the weakest of its grades. */
  private lower(level: GradeLevel): void {
    if (GRADE_LEVELS.indexOf(level) > GRADE_LEVELS.indexOf(this.grade)) this.grade = level;
  }

  /** `lay`: whether there is room for the task's files as they were, beside the check's. */
  private async notLaid(
    fault: { path: string; reason: string; message: string },
    hidden: boolean,
    lay: (untouched: Files) => Promise<boolean>,
  ): Promise<Graded> {
    const untouched = layFiles(this.initial());
    if (fault.reason === 'disk' && !(untouched.ok && (await lay(untouched.files))))
      throw new EnvironmentError(
        `the files of the task and its check do not fit into the box (${fault.path}: ${fault.message}); sandbox.tmpfs_mb bounds their bytes, and 4,000 are the most for a check made apart`,
      );
    if (hidden && fault.reason === 'other')
      throw new EnvironmentError(`the check's file ${fault.path} cannot be written: ${fault.message}`);
    const told = fault.reason === 'disk' || fault.reason === 'escape';
    return { passed: false, diagnostics: told ? [fault.reason as Diagnostic] : [] };
  }

  /** Why these files cannot be the state, or null. */
  private refusal(files: ValueMap): string | null {
    let bytes = 0;
    for (const [path, content] of files) {
      const fault = surrogateFault(path) ?? (typeof content === 'string' ? surrogateFault(content) : null);
      if (fault) return fault;
      bytes += path.length + (typeof content === 'string' ? Buffer.byteLength(content) : 0);
    }
    const allowed = bytesOf(this.initial()) + GROWTH_BYTES;
    if (bytes > allowed) return `the files would hold ${bytes} bytes, more than the ${allowed} allowed`;
    const added = nameBytes([...files.keys()].filter((path) => !this.initial().has(path)));
    return added > ADDED_NAME_BYTES
      ? `the names of added files would have ${added} bytes, more than the ${ADDED_NAME_BYTES} allowed`
      : null;
  }

  private statement(): string {
    const task = this.settings.get('task');
    return typeof task === 'string' ? task : '';
  }

  private initial(): ValueMap {
    return this.settings.get('files') as ValueMap;
  }
}

function bytesOf(files: ValueMap): number {
  let bytes = 0;
  for (const [path, content] of files) bytes += path.length + Buffer.byteLength(content as string);
  return bytes;
}

/** Normalised; none for a name that no file can have. */
function pathOf(name: string): string[] {
  const place = safePath(name);
  return place.ok ? [place.path] : [];
}

/** Whether the program of a check is a file that an edit can have made or unmade: then it is the agent's that it does not
 *  start. What the image has to have, and the check's own files, are not. */
function couldBeTheAgents(program: string, hidden: Files): boolean {
  if (!program.includes('/')) return false;
  const inside = program.startsWith('/work/') ? program.slice('/work/'.length) : program;
  const place = safePath(inside);
  return place.ok && !hidden.has(place.path);
}

type Files = ReadonlyMap<string, Buffer>;
type Graded = { passed: boolean; diagnostics: Diagnostic[] };
