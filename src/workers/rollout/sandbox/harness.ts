// The grading harness (infra/harness): Python of ours that the nursery of a box runs, sent into the box as data. Its hash
// is part of the runner's on every certificate, so a changed grader is a changed runner. The bytecode that the first box
// of an image compiled is laid into the later ones.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { missingError } from '../../../shared/errors.ts';

/** In the checkout; the compiled sources lie as deep as these. */
const HARNESS_SOURCES = fileURLToPath(new URL('../../../../infra/harness/', import.meta.url));
/** Where they lie in a box. */
const FOLDER = 'harness';
const MAX_BYTECODE_SETS = 32;

export class Harness {
  readonly hash: string;
  /** Path inside /farm → content. */
  readonly sources: ReadonlyMap<string, Buffer>;
  readonly #bytecode = new Map<string, ReadonlyMap<string, Buffer>>();

  constructor(folder: string = HARNESS_SOURCES) {
    const names = pythonFiles(folder);
    const hash = createHash('sha256');
    const sources = new Map<string, Buffer>();
    for (const name of names) {
      const content = readFileSync(`${folder}/${name}`);
      hash.update(`${name} ${content.length}\n`).update(content);
      sources.set(`${FOLDER}/${name}`, content);
    }
    this.hash = hash.digest('hex').slice(0, 12);
    this.sources = sources;
  }

  /** What a box of this image and interpreter needs, with the bytecode if it is known. */
  filesFor(key: string): { files: Map<string, Buffer>; compiled: boolean } {
    const bytecode = this.#bytecode.get(key);
    return { files: new Map([...this.sources, ...(bytecode ?? [])]), compiled: bytecode !== undefined };
  }

  /** `files`: what lies in a box's /farm after its interpreter has started. */
  learn(key: string, files: ReadonlyMap<string, Buffer>): void {
    const compiled = [...files].filter(([path]) => path.startsWith(`${FOLDER}/`) && path.endsWith('.pyc'));
    if (this.#bytecode.size < MAX_BYTECODE_SETS) this.#bytecode.set(key, new Map(compiled));
  }
}

/** The interpreter's arguments: no user's site, and nothing else that differs from a plain start. A warm one
 *  is told so: what it imports ahead is imported once, which for a single grade would be lost. */
export function nurseryCommand(interpreter: string, warm: boolean): string[] {
  return [interpreter, '-s', `/farm/${FOLDER}/main.py`, ...(warm ? ['warm'] : [])];
}

/** All of its environment. The hash seed is the same as every command's, or orders of sets would differ between grades. */
export function nurseryEnvironment(path: string): string[] {
  return [`PATH=${path}`, 'LANG=C.UTF-8', 'PYTHONHASHSEED=0'];
}

/** 12 digits over both: what judges a grade inside a box. */
export function graderHash(runner: string, harness: string): string {
  return createHash('sha256').update(`${runner} ${harness}`).digest('hex').slice(0, 12);
}

function pythonFiles(folder: string): string[] {
  try {
    const all = readdirSync(folder, { recursive: true, encoding: 'utf8' });
    return all
      .filter((name) => name.endsWith('.py') && !/(^|\/)tests?\//.test(name))
      .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  } catch (error) {
    throw missingError(
      'image_missing',
      `the grading harness is not at ${folder}`,
      'put infra/harness of the checkout beside dist',
      error,
    );
  }
}
