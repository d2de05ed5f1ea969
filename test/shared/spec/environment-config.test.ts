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

  it('code-task refuses what is not built yet by its name, and files that could never be written', () => {
    const check = { command: ['true'] };
    expect(
      problems('code-task', { files: { 'a.py': '' }, task: 't', check: { ...check, warm: 'x', kind: 'tests' } }),
    ).toEqual([
      'config.check.warm: warm checks are not built yet',
      'config.check.kind: "tests" is given; "exit" is allowed, other kinds are not built yet',
    ]);
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
