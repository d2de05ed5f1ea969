// Bad configs are told in full before anything starts: which field, what was given, what is allowed.

import { describe, expect, it } from 'vitest';
import { toValue } from '../../../src/shared/json/json.ts';
import { mapOf, type Value, type ValueMap } from '../../../src/shared/json/value.ts';
import { ENVIRONMENT_CONFIGS, type EnvironmentConfig } from '../../../src/shared/spec/environment-config.ts';

const kindOf = (name: string): EnvironmentConfig => ENVIRONMENT_CONFIGS.get(name) as EnvironmentConfig;
const problems = (name: string, config: unknown): string[] =>
  kindOf(name)
    .check(toValue(config))
    .map((p) => `${p.path}: ${p.message}`);
const resolved = (name: string, config: unknown): ValueMap => kindOf(name).resolve(toValue(config) as ValueMap);

describe('the config of', () => {
  it('every environment of the interface is known', () => {
    expect([...ENVIRONMENT_CONFIGS.keys()]).toEqual([
      'guess',
      'sql-task',
      'command',
      'http-task',
      'code-task',
      'terminal',
      'text',
    ]);
    const light = [...ENVIRONMENT_CONFIGS.values()].filter((kind) => !kind.usesSandbox).map((kind) => kind.name);
    expect(light).toEqual(['guess', 'http-task', 'text']);
  });

  it('guess has defaults in order, and names every problem at once', () => {
    expect([...resolved('guess', { high: 30 })]).toEqual([
      ['low', 1n],
      ['high', 30n],
      ['max_guesses', 10n],
    ]);
    expect(problems('guess', { low: 'x', hihg: 3, max_guesses: null })).toEqual([
      'config.hihg: is unknown; did you mean high? (allowed: low, high, max_guesses)',
      'config.low: "x" is given, an integer is needed',
      'config.max_guesses: null is given, an integer is needed',
    ]);
    expect(problems('guess', { low: 101 })).toEqual([
      'config.low: 101 is above high (100); low must not be above high',
    ]);
    expect(problems('guess', [])).toEqual(['config: [] is given, an object is needed']);
  });

  it('guess takes a whole float as a bound, and keeps it one; a fraction is none', () => {
    const guess = kindOf('guess');
    const bounds = mapOf({ low: 1, high: 9n });
    expect(guess.check(bounds)).toEqual([]);
    expect(guess.resolve(bounds).get('low')).toBe(1);
    expect(guess.check(mapOf({ low: 1.5 })).map((p) => p.path)).toEqual(['config.low']);
    expect(guess.check(mapOf({ low: 10, high: 9n })).map((p) => p.path)).toEqual(['config.low']);
  });

  it('command and terminal take a positive, finite timeout of either kind', () => {
    const command = { files: {}, task: 't', expected_stdout: '' };
    expect(resolved('command', command).get('timeout')).toBe(10);
    expect(resolved('command', { ...command, timeout: 3 }).get('timeout')).toBe(3n);
    for (const timeout of [0, -1.5, Number.NaN, Number.POSITIVE_INFINITY, '3']) {
      expect(problems('command', { ...command, timeout })).toHaveLength(1);
    }
  });

  it('sql-task says what is missing', () => {
    expect(problems('sql-task', { task: 't', expected_rows: 5 })).toEqual([
      'config.schema_sql: is missing, and has no default',
      'config.seed_sql: is missing, and has no default',
      'config.expected_rows: 5 is given, a list is needed',
    ]);
  });

  it('http-task fills in the answer to an unknown request', () => {
    const config = resolved('http-task', {
      recording: { 'GET /': { body: 1 } },
      task: 't',
      expected_body: null,
      not_found: null,
    });
    expect(config.get('not_found')).toEqual(mapOf({ status: 404n, body: null }));
    expect(problems('http-task', { recording: { 'GET /': 5 }, task: 't', expected_body: 1 })).toEqual([
      'config.recording["GET /"]: 5 is given, an object with a body is needed',
    ]);
  });

  it('code-task knows how a check is judged by the shape of its command, and records it', () => {
    const kindOf = (check: object) => {
      const config = { files: { 'a.py': '' }, task: 't', check };
      expect(problems('code-task', config)).toEqual([]);
      return (resolved('code-task', config).get('check') as ValueMap).get('kind');
    };
    const files = { 'check.py': '', 'tests/deep.py': '' };
    for (const command of [
      ['python3', 'check.py'],
      ['python', 'check.py', '-v', 'x'],
      ['/usr/bin/python3.11', './tests/../check.py'],
      ['/opt/venv/bin/python3', '/work/tests/deep.py'],
    ])
      expect([command, kindOf({ command, files })]).toEqual([command, 'apart']);
    for (const command of [
      ['python3', 'a.py'],
      ['python3', 'made-by-the-agent.py'],
      ['python3', '-m', 'pytest', '-q'],
      ['/usr/bin/python3', '-m', 'unittest'],
    ])
      expect([command, kindOf({ command, files })]).toEqual([command, 'in-process']);
    for (const command of [
      ['python3'],
      ['python3', '-c', 'pass'],
      ['python3', '-I', 'check.py'],
      ['python3', '-m'],
      ['python3', '-m', '-q'],
      ['python3', '../check.py'],
      ['python3', '/etc/check.py'],
      ['python2', 'check.py'],
      ['pypy3', 'check.py'],
      ['./python3', 'check.py'],
      ['venv/bin/python3', 'check.py'],
      ['/work/python3', 'check.py'],
      ['/tmp/../usr/bin/python3', 'check.py'],
      ['sh', '-c', 'python3 check.py'],
      ['make', 'check.py'],
    ])
      expect([command, kindOf({ command, files })]).toEqual([command, 'exit']);
    expect(kindOf({ command: ['python3', 'check.py'] })).toBe('in-process');
    for (const kind of ['exit', 'in-process', 'apart'])
      expect(kindOf({ command: ['python3', 'check.py'], files, kind })).toBe(kind);
  });

  it.each<[string, string, { files?: number; hidden?: number; letter?: string }]>([
    ['of the task', 'config.files', { files: 6_000 }],
    ['of the check', 'config.check.files', { hidden: 6_000 }],
    ['of both together', 'config.files', { files: 3_100, hidden: 2_900 }],
    ['that JSON makes longer', 'config.files', { files: 1_000, letter: '\u0001' }],
  ])(
    'code-task refuses more names %s than a judge can be told',
    (_, field, { files = 1, hidden = 0, letter = 'n' }) => {
      const named = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`${letter.repeat(100)}${i}`, '']));
      const of = (check: object) => problems('code-task', { files: named(files), task: 't', check });
      const check = { command: ['python3', 'check.py'], files: { 'check.py': '', ...named(hidden) } };
      expect(of(check)).toEqual([
        expect.stringMatching(new RegExp(`^${field}: the names .* \\d+ bytes.* allowed are 524288 in all$`)),
      ]);
      expect(of({ ...check, kind: 'exit' })).toEqual([]);
    },
  );

  it('code-task refuses a kind that its command cannot have, and a prepared interpreter for none', () => {
    const files = { 'check.py': '' };
    const of = (check: object) => problems('code-task', { files: { 'a.py': '' }, task: 't', check });
    expect(of({ command: ['true'], warm: 'x', kind: 'tests' })).toEqual([
      'config.check.kind: "tests" is given; allowed: apart, in-process, exit',
      'config.check.warm: "x" is given; allowed: python3',
    ]);
    expect(of({ command: ['python3', '-O', 'check.py'], files, kind: 'apart' })).toEqual([
      expect.stringMatching(/^config\.check\.kind: "apart" needs .*the interpreter has the option -O$/),
    ]);
    expect(of({ command: ['python3', 'a.py'], files, kind: 'apart' })).toEqual([
      expect.stringMatching(/^config\.check\.kind: "apart" needs .*a\.py is not one of check\.files$/),
    ]);
    expect(of({ command: ['python3', '-m', 'pytest'], files, kind: 'apart' })).toEqual([
      expect.stringMatching(/^config\.check\.kind: "apart" needs .*it runs a module$/),
    ]);
    expect(of({ command: ['sh', 'x'], files, kind: 'in-process' })).toEqual([
      expect.stringMatching(/^config\.check\.kind: "in-process" needs .*its program is not python3$/),
    ]);
    expect(of({ command: ['true'], warm: 'python3' })).toEqual([
      expect.stringMatching(/^config\.check\.warm: .*this check is "exit": its program is not python3$/),
    ]);
    expect(of({ command: ['python3', 'check.py'], files, kind: 'exit', warm: 'python3' })).toEqual([
      expect.stringMatching(/^config\.check\.warm: .*this check is "exit"$/),
    ]);
    for (const command of [
      ['python3', 'check.py'],
      ['python3', '-m', 'pytest'],
    ]) {
      const config = { files: { 'a.py': '' }, task: 't', check: { command, files, warm: 'python3' } };
      expect(problems('code-task', config)).toEqual([]);
      expect((resolved('code-task', config).get('check') as ValueMap).get('warm')).toBe('python3');
    }
  });

  it('code-task refuses files that could never be written', () => {
    const check = { command: ['true'] };
    expect(
      problems('code-task', { files: { '../a': 'x', b: '\ud83d' }, task: 't', check: { command: 'true' } }),
    ).toEqual([
      'config.files["../a"]: the path leads out of the work folder',
      expect.stringMatching(/^config\.files\["b"\]: cannot be written as UTF-8/),
      'config.check.command: "true" is given, a list of texts is needed: the program and its arguments',
    ]);
    expect(problems('code-task', { files: {}, task: 't', check })).toEqual([
      'config.files: at least one file is needed',
    ]);
    const filled = resolved('code-task', { files: { 'a.py': '' }, task: 't', check }).get('check') as Value;
    expect(filled).toEqual(mapOf({ command: ['true'], files: new Map(), timeout: 30, kind: 'exit' }));
  });

  it('terminal checks its goal all the way down', () => {
    const goal = {
      all: [
        { kind: 'has_file', path: 'a' },
        { kind: 'file_count', count: -1 },
        { kind: 'file_equal', path: 'a' },
      ],
    };
    expect(problems('terminal', { files: {}, task: 't', goal })).toEqual([
      'config.goal.all[1].count: -1 is given, an integer of 0 or more is needed',
      'config.goal.all[2].kind: "file_equal" is given; allowed: has_file, no_file, file_equals, file_contains, file_count',
    ]);
  });

  it('text has no keys', () => {
    expect(problems('text', {})).toEqual([]);
    expect(problems('text', { a: 1 })).toEqual(['config.a: is unknown; there are no keys here']);
  });
});
