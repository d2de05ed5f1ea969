// The items of `farm score`: JSON lines with a prompt, a completion and perhaps metadata. All are checked before anything
// is asked, so that line 9,000 does not spoil what the first 8,999 have cost.

import { once } from 'node:events';
import { EXIT, FarmError } from '../shared/errors.ts';
import { JsonError, parseJson } from '../shared/json/json.ts';
import { isMap, type Value } from '../shared/json/value.ts';
import { LineFile, readBytes } from '../shared/spec/file.ts';
import { printProblems, type SpecProblem } from '../shared/spec/problem.ts';
import type { VerifyItem } from '../workers/verify/verify.ts';

/** So many items are read, asked and printed at a time. */
const SLICE = 2_000;

export class ScoreItems {
  private readonly lines: LineFile;

  private constructor(lines: LineFile) {
    this.lines = lines;
    for (let i = 0; i < lines.count; i++) readItem(lines, i);
  }

  /** Throws FarmError (exit 2) that names the file and the line. */
  static async read(file: string): Promise<ScoreItems> {
    return new ScoreItems(await readLines(file));
  }

  /** The items in their order, some at a time. */
  *slices(): Generator<{ start: number; items: VerifyItem[] }> {
    for (let start = 0; start < this.lines.count; start += SLICE) {
      const items = Array.from({ length: Math.min(SLICE, this.lines.count - start) }, (_, i) =>
        readItem(this.lines, start + i),
      );
      yield { start, items };
    }
  }
}

function fail(problem: SpecProblem): never {
  throw new FarmError('input_invalid', printProblems([problem]), { exit: EXIT.input });
}

async function readLines(file: string): Promise<LineFile> {
  const bytes = await readBytes(file, file);
  if (!bytes.ok) return fail(bytes.problem);
  const lines = LineFile.of(bytes.value, file);
  return lines.ok ? lines.value : fail(lines.problem);
}

function readItem(lines: LineFile, index: number): VerifyItem {
  const refuse = (message: string): never => fail({ file: lines.shown, line: lines.line(index), path: '', message });
  let value: Value;
  try {
    value = parseJson(lines.text(index));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return refuse(`is not JSON: ${error.message}`);
  }
  if (!isMap(value)) return refuse('must be an object with "prompt" and "completion"');
  const { prompt, completion } = { prompt: value.get('prompt'), completion: value.get('completion') };
  if (prompt === undefined) return refuse('"prompt" is missing');
  if (completion === undefined) return refuse('"completion" is missing');
  const metadata = value.get('metadata') ?? null;
  if (metadata !== null && !isMap(metadata)) return refuse('"metadata" must be an object');
  return { prompt, completion, metadata };
}

/** Waits for a slow reader. */
export async function print(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
