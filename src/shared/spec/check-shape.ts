// What the command of a code task's check is, read off the task alone: which grade it can have, and which file or module
// the harness then runs. Never from what the candidate does: two members of a group are judged the same way.

import { isMap, type Value, type ValueMap } from '../json/value.ts';
import { safePath } from '../safe-path.ts';

export type CheckShape =
  | {
      level: 'apart' | 'in-process';
      interpreter: string;
      /** Normalised; null where a module runs. */
      file: string | null;
      module: string | null;
      /** What the program will see as `sys.argv`. */
      argv: string[];
      /** Why it is not more, for a message. */
      because: string;
    }
  | { level: 'exit'; because: string };

const PYTHON = /^python(3(\.\d+)?)?$/;
/** Where untrusted code could put an interpreter of its own. */
const WRITABLE = /^\/(work|judge|tmp|dev|proc|sys)(\/|$)/;

/** `check` has a sound command and files. */
export function checkShape(check: ValueMap): CheckShape {
  const [interpreter, first, ...rest] = check.get('command') as string[];
  if (interpreter === undefined || !isPython(interpreter)) return exit('its program is not python3');
  if (first === undefined) return exit('there is no file to run');
  if (first === '-m') {
    const [module, ...args] = rest;
    if (module === undefined || module.startsWith('-')) return exit('there is no module to run');
    return {
      level: 'in-process',
      interpreter,
      file: null,
      module,
      argv: [module, ...args],
      because: 'it runs a module',
    };
  }
  if (first.startsWith('-')) return exit(`the interpreter has the option ${first}`);
  const place = safePath(first.startsWith('/work/') ? first.slice('/work/'.length) : first);
  if (!place.ok) return exit(`${first} is no file of the task`);
  const argv = [first, ...rest];
  const hidden = isHidden(place.path, check.get('files') ?? null);
  const because = hidden ? '' : `${place.path} is not one of check.files`;
  return { level: hidden ? 'apart' : 'in-process', interpreter, file: place.path, module: null, argv, because };
}

function exit(because: string): CheckShape {
  return { level: 'exit', because };
}

function isPython(program: string): boolean {
  if (!PYTHON.test(program.slice(program.lastIndexOf('/') + 1))) return false;
  return !program.includes('/') || (program.startsWith('/') && !WRITABLE.test(program) && !program.includes('/../'));
}

function isHidden(path: string, files: Value): boolean {
  if (!isMap(files)) return false;
  return [...files.keys()].some((name) => {
    const place = safePath(name);
    return place.ok && place.path === path;
  });
}
