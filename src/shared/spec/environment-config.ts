// What each environment's `config` may say: checked before anything starts (by the producer, which never meets an
// environment) and resolved for the worker that builds one. Names and defaults are crucible's (INTERFACE, environments).

import type { Problem } from '../environment.ts';
import { dumpJson } from '../json/json.ts';
import { isMap, mapOf, type Value, type ValueMap } from '../json/value.ts';
import { GRADE_LEVELS } from '../sandbox.ts';
import { checkShape } from './check-shape.ts';
import {
  aList,
  anArgv,
  anything,
  aTask,
  aText,
  aTimeout,
  aWhole,
  aWritableText,
  type Check,
  checkFields,
  type Field,
  fillFields,
  isWhole,
  oneOrMoreFiles,
  shown,
  someFiles,
  writableFiles,
} from './config-fields.ts';
import { nameBytes, TASK_NAME_BYTES } from './file-names.ts';
import { checkGoal } from './goal.ts';

export interface EnvironmentConfig {
  readonly name: string;
  /** Whether its episodes may open a box: light episodes take another lane. */
  readonly usesSandbox: boolean;
  /** Every problem, with its path inside the config (`config.low`); empty if sound. Unknown keys are problems. */
  check(config: Value): Problem[];
  /** The config with defaults filled in, in crucible's key order. Only for one that `check` passed. */
  resolve(config: ValueMap): ValueMap;
}

/** crucible's bounds of its own: a command has 10 s, a grader 30 s (each also has the sandbox's, which is smaller by default). */
const COMMAND_SECONDS = 10;
const CHECK_SECONDS = 30;

const GUESS: Field[] = [
  { name: 'low', check: aWhole, fallback: 1n },
  { name: 'high', check: aWhole, fallback: 100n },
  { name: 'max_guesses', check: aWhole, fallback: 10n },
];

const SQL_TASK: Field[] = [
  { name: 'schema_sql', check: aWritableText },
  { name: 'seed_sql', check: aWritableText },
  { name: 'task', check: aTask },
  { name: 'expected_rows', check: aList },
];

const COMMAND: Field[] = [
  { name: 'files', check: someFiles },
  { name: 'task', check: aTask },
  { name: 'expected_stdout', check: aText },
  { name: 'timeout', check: aTimeout, fallback: COMMAND_SECONDS },
];

const aRecording: Check = (value, path, problems) => {
  const pairs = recordedPairs(value);
  if (!pairs) {
    problems.push({ path, message: `${shown(value)} is given, an object of "METHOD path" and response is needed` });
    return;
  }
  for (const [key, response] of pairs) aResponse(response, `${path}[${dumpJson(key)}]`, problems);
};

const aResponse: Check = (value, path, problems) => {
  if (!isMap(value)) problems.push({ path, message: `${shown(value)} is given, an object with a body is needed` });
};

/** crucible takes whatever `dict()` takes: an object, or a list of pairs. */
function recordedPairs(value: Value): [string, Value][] | null {
  if (isMap(value)) return [...value];
  if (!Array.isArray(value)) return null;
  const pairs: [string, Value][] = [];
  for (const pair of value) {
    if (!Array.isArray(pair) || pair.length !== 2 || typeof pair[0] !== 'string') return null;
    pairs.push([pair[0], pair[1] as Value]);
  }
  return pairs;
}

/** What an unknown request gets, unless the config says otherwise. */
const NOT_FOUND = mapOf({ status: 404n, body: null });

const HTTP_TASK: Field[] = [
  { name: 'recording', check: aRecording },
  { name: 'task', check: aTask },
  { name: 'expected_body', check: anything },
  {
    name: 'not_found',
    check: (value, path, problems) => (value === null ? undefined : aResponse(value, path, problems)),
    fallback: NOT_FOUND,
  },
];

const CHECK: Field[] = [
  { name: 'command', check: anArgv },
  { name: 'files', check: writableFiles, fallback: new Map() },
  { name: 'timeout', check: aTimeout, fallback: CHECK_SECONDS },
  { name: 'kind', check: (value, path, problems) => aKind(value, path, problems), fallback: 'exit' },
];
/** Left out of the resolved config where it is not given. */
const WARM: Field = { name: 'warm', check: (value, path, problems) => aWarm(value, path, problems), fallback: null };

const aKind: Check = (value, path, problems) => {
  if (!GRADE_LEVELS.some((level) => level === value))
    problems.push({ path, message: `${shown(value)} is given; allowed: ${GRADE_LEVELS.join(', ')}` });
};

const aWarm: Check = (value, path, problems) => {
  if (value !== 'python3') problems.push({ path, message: `${shown(value)} is given; allowed: python3` });
};

const aCheck: Check = (value, path, problems) => {
  const before = problems.length;
  checkFields(value, path, [...CHECK, WARM], problems);
  if (!isMap(value) || problems.length > before) return;
  const shape = checkShape(value);
  const kind = value.get('kind') ?? shape.level;
  if (kind === 'apart' && shape.level !== 'apart')
    problems.push({
      path: `${path}.kind`,
      message: `"apart" needs a command of python3, a file of check.files and its arguments, without options of the interpreter; ${shape.because}`,
    });
  if (kind === 'in-process' && shape.level === 'exit')
    problems.push({
      path: `${path}.kind`,
      message: `"in-process" needs a command of python3 and a file, or python3 -m and a module; ${shape.because}`,
    });
  if (value.has('warm') && kind === 'exit')
    problems.push({
      path: `${path}.warm`,
      message: `a prepared interpreter grades "apart" and "in-process", and this check is "exit"${value.has('kind') ? '' : `: ${shape.because}`}`,
    });
};

/** With what its command's shape makes of a check that does not say its kind. */
function resolveCheck(check: ValueMap): ValueMap {
  const filled = fillFields(check, CHECK);
  if (!check.has('kind')) filled.set('kind', checkShape(check).level);
  if (check.has('warm')) filled.set('warm', check.get('warm') as Value);
  return filled;
}

const CODE_TASK: Field[] = [
  { name: 'files', check: oneOrMoreFiles },
  { name: 'task', check: aTask },
  { name: 'check', check: aCheck },
];

const TERMINAL: Field[] = [
  { name: 'files', check: writableFiles },
  { name: 'task', check: aTask },
  { name: 'goal', check: checkGoal },
  { name: 'timeout', check: aTimeout, fallback: COMMAND_SECONDS },
];

interface Extra {
  usesSandbox: boolean;
  /** What no single field can tell. */
  more?: (config: ValueMap, problems: Problem[]) => void;
  resolve?: (config: ValueMap) => ValueMap;
}

function define(name: string, fields: readonly Field[], extra: Extra): [string, EnvironmentConfig] {
  return [
    name,
    {
      name,
      usesSandbox: extra.usesSandbox,
      check: (config) => {
        const problems: Problem[] = [];
        checkFields(config, 'config', fields, problems);
        if (isMap(config)) extra.more?.(config, problems);
        return problems;
      },
      resolve: (config) => {
        const filled = fillFields(config, fields);
        return extra.resolve?.(filled) ?? filled;
      },
    },
  ];
}

function checkBounds(config: ValueMap, problems: Problem[]): void {
  const low = config.get('low') ?? 1n;
  const high = config.get('high') ?? 100n;
  if (isWhole(low) && isWhole(high) && low > high) {
    problems.push({ path: 'config.low', message: `${low} is above high (${high}); low must not be above high` });
  }
}

/** A check by its exit status alone is told no names. */
function checkNames(config: ValueMap, problems: Problem[]): void {
  if (problems.length > 0) return;
  const check = resolveCheck(config.get('check') as ValueMap);
  if (check.get('kind') === 'exit') return;
  const own = nameBytes((config.get('files') as ValueMap).keys());
  const hidden = nameBytes((check.get('files') as ValueMap).keys());
  if (own + hidden > TASK_NAME_BYTES)
    problems.push({
      path: own > hidden ? 'config.files' : 'config.check.files',
      message: `the names of the task's files have ${own} bytes, those of the check's ${hidden}; allowed are ${TASK_NAME_BYTES} in all`,
    });
}

export const ENVIRONMENT_CONFIGS: ReadonlyMap<string, EnvironmentConfig> = new Map([
  define('guess', GUESS, { usesSandbox: false, more: checkBounds }),
  define('sql-task', SQL_TASK, { usesSandbox: true }),
  define('command', COMMAND, { usesSandbox: true }),
  define('http-task', HTTP_TASK, {
    usesSandbox: false,
    resolve: (filled) => {
      filled.set('recording', new Map(recordedPairs(filled.get('recording') as Value) ?? []));
      if (filled.get('not_found') === null) filled.set('not_found', NOT_FOUND);
      return filled;
    },
  }),
  define('code-task', CODE_TASK, {
    usesSandbox: true,
    more: checkNames,
    resolve: (filled) => filled.set('check', resolveCheck(filled.get('check') as ValueMap)),
  }),
  define('terminal', TERMINAL, { usesSandbox: true }),
  define('text', [], { usesSandbox: false }),
]);
