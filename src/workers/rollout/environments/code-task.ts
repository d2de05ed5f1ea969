// `code-task`: edit a small repository until its check passes. crucible's environment with the check as data: a command
// that must exit 0 over the files and the check's own hidden files, which are laid in last and win over every edit.
// The judged code shares a process with its check: such a grade can be forged, and the certificate says `in-process`.

import type { Environment, EnvironmentContext, StepResult } from '../../../shared/environment.ts';
import { parseJson } from '../../../shared/json/json.ts';
import { compareCodePoints, isMap, mapOf, type Value, type ValueMap } from '../../../shared/json/value.ts';
import type { Diagnostic } from '../../../shared/outcome.ts';
import { repr, surrogateFault, typeName } from '../../../shared/python/text.ts';
import { layFiles } from '../../../shared/safe-path.ts';
import type { BoxLost } from '../../../shared/sandbox.ts';
import { diagnosticsOf, stepLimit } from './box-command.ts';
import { fencedBlock } from './fenced-block.ts';
import { lostBoxStep, missedStep } from './missed-step.ts';
import { filesDigest } from './state-digest.ts';

const MISS = -0.1;
/** Edits may add this much to the task's own files: each step's observation repeats them all. */
const GROWTH_BYTES = 16 * 1024 * 1024;

export class CodeTaskEnvironment implements Environment {
  readonly name = 'code-task';
  readonly grade = 'in-process';
  private readonly settings: ValueMap;
  private readonly context: EnvironmentContext;
  private current: ValueMap = new Map();
  private passed = false;

  constructor(config: ValueMap, context: EnvironmentContext) {
    this.settings = config;
    this.context = context;
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

  private async gradeCurrent(): Promise<{ passed: boolean; diagnostics: Diagnostic[] }> {
    const check = this.settings.get('check') as ValueMap;
    // In path order, as a saved file has them: two spellings of one path must not depend on who wrote first.
    const laid = layFiles([...this.current].sort(([a], [b]) => compareCodePoints(a, b)));
    if (!laid.ok) return { passed: false, diagnostics: laid.escape ? ['escape'] : [] };
    const hidden = check.get('files') as ValueMap;
    const files = withHidden(laid.files, hidden);
    if (!files) return { passed: false, diagnostics: [] };
    const box = await this.context.box();
    await box.reset();
    const written = await box.write(files);
    if (!written.ok) return { passed: false, diagnostics: written.reason === 'other' ? [] : [written.reason] };
    const result = await box.run({
      argv: check.get('command') as string[],
      timeoutMs: stepLimit(this.context, check.get('timeout')).ms,
      outputBytes: this.context.outputBytes,
      signal: this.context.signal,
    });
    return { passed: result.cause === 'exit' && result.exitCode === 0, diagnostics: diagnosticsOf(result) };
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
    return bytes > allowed ? `the files would hold ${bytes} bytes, more than the ${allowed} allowed` : null;
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

/** Hidden files win: what stands where they must lie, or their folders, gives way. Null if they cannot be laid at all. */
function withHidden(files: ReadonlyMap<string, Buffer>, hidden: ValueMap): Map<string, Buffer> | null {
  const wanted = layFiles(hidden);
  if (!wanted.ok) return null;
  const paths = [...wanted.files.keys()];
  const inTheWay = (path: string): boolean =>
    paths.some((own) => own === path || own.startsWith(`${path}/`) || path.startsWith(`${own}/`));
  return new Map([...[...files].filter(([path]) => !inTheWay(path)), ...wanted.files]);
}

type Edits = { ok: true; edits: [string, Value][] } | { ok: false; error: string };

/** `dict(action)`: an object, or a list of pairs (of two items, or of two characters), with text for keys. */
function editsOf(action: Value): Edits {
  if (isMap(action)) return { ok: true, edits: [...action] };
  if (typeof action !== 'string' && !Array.isArray(action)) {
    return { ok: false, error: `'${typeName(action)}' object is not iterable` };
  }
  if (typeof action === 'string') {
    if (action === '') return { ok: true, edits: [] };
    return { ok: false, error: 'dictionary update sequence element #0 has length 1; 2 is required' };
  }
  const edits: [string, Value][] = [];
  for (const [i, item] of action.entries()) {
    const pair: Value[] | null =
      typeof item === 'string'
        ? [...item.slice(0, 6)]
        : Array.isArray(item)
          ? item
          : isMap(item)
            ? [...item.keys()]
            : null;
    if (!pair) return { ok: false, error: `cannot convert dictionary update sequence element #${i} to a sequence` };
    const length = typeof item === 'string' && item.length > 6 ? [...item].length : pair.length;
    if (length !== 2) {
      return { ok: false, error: `dictionary update sequence element #${i} has length ${length}; 2 is required` };
    }
    const [path, content] = pair as [Value, Value];
    if (typeof path !== 'string')
      return { ok: false, error: `a path must be text, not ${typeName(path)} ${repr(path).slice(0, 80)}` };
    edits.push([path, content]);
  }
  return { ok: true, edits };
}
