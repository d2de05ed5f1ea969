// Whatever an action contains, an environment answers with a step: the miss reward and a reason, never an exception.

import { describe, expect, it } from 'vitest';
import type { Environment } from '../../../src/shared/environment.ts';
import { isMap, mapOf, type Value } from '../../../src/shared/json/value.ts';
import { BoxLost } from '../../../src/shared/sandbox.ts';
import { build, playActions } from './test-context.ts';

const MB = 1024 * 1024;
const deep = (): Value => {
  let value: Value = 1n;
  for (let i = 0; i < 850; i++) value = [value];
  return value;
};
const HOSTILE: Record<string, Value> = {
  null: null,
  number: 5.5,
  NaN: Number.NaN,
  'a huge int': 10n ** 5000n,
  'an empty text': '',
  'an empty list': [],
  'an empty object': new Map(),
  'a lone surrogate': '\ud83d',
  'a lone surrogate in a list': ['printf', '\udc80'],
  NUL: 'a\0b',
  'NUL in a list': ['printf', 'a\0b'],
  'a lone surrogate as content': mapOf({ 'a.txt': '\ud83d' }),
  'a lone surrogate as path': mapOf({ '\ud83d': 'x' }),
  'NUL in a path': mapOf({ 'a\0b': 'x' }),
  'a path upwards': mapOf({ '../../x': 'x' }),
  'an absolute path': mapOf({ '/etc/x': 'x' }),
  'a file as folder': mapOf({ 'a.txt/b': 'x' }),
  'a long name': mapOf({ ['n'.repeat(300)]: 'x' }),
  'content that is no text': mapOf({ 'a.txt': [1n] }),
  __proto__: mapOf({ __proto__x: 'x', ['__proto__']: 'y' }),
  'deep nesting': deep(),
  'mixed types': [null, true, 1.5, new Map(), []],
  'a megabyte of names': mapOf(
    Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`${'n'.repeat(100)}${i}`, ''])),
  ),
  'many arguments': Array.from({ length: 300_000 }, () => 'x'),
};
const CONFIGS: Record<string, unknown> & { command: unknown } = {
  guess: {},
  'http-task': { recording: { 'GET /': { body: 1 } }, task: 't', expected_body: 2 },
  'sql-task': { schema_sql: 'CREATE TABLE t (a);', seed_sql: '', task: 't', expected_rows: [[99]] },
  command: { files: { 'a.txt': 'x' }, task: 't', expected_stdout: 'never' },
  'code-task': { files: { 'a.txt': 'x' }, task: 't', check: { command: ['false'] } },
  terminal: { files: { 'a.txt': 'x' }, task: 't', goal: { kind: 'has_file', path: 'never' } },
};
const MISS: Record<string, number> = { guess: -0.05, terminal: -0.05 };

describe.each(Object.keys(CONFIGS))('%s', (name) => {
  it.each(Object.keys(HOSTILE))('makes a miss of %s', async (what) => {
    const episode = await playActions(build(name, CONFIGS[name]), [HOSTILE[what] as Value]);
    expect(episode).toMatchObject({ status: 'completed', steps: 1, totalReward: MISS[name] ?? -0.1 });
  });

  it('makes a miss of megabytes', async () => {
    for (const action of ['\u0000'.repeat(MB), mapOf({ 'a.txt': 'é'.repeat(MB) })]) {
      const episode = await playActions(build(name, CONFIGS[name]), [action]);
      expect(episode).toMatchObject({ status: 'completed', totalReward: MISS[name] ?? -0.1 });
    }
  });

  it('survives any completion', () => {
    const environment = build(name, CONFIGS[name]);
    for (const text of ['', '```', '```\n', '[', '{"a":', '\ud83d', `${'['.repeat(50_000)}`, '~~~py\nx', 'a\0']) {
      expect(environment.parseCompletion(text)).toBeDefined();
    }
  });
});

describe('an action that is told why it missed', () => {
  it('reads the reason in info and observation', async () => {
    const step = await stepOf(build('http-task', CONFIGS['http-task']), ['GET']);
    expect(isMap(step.info) && step.info.get('error')).toBe("'list' object has no attribute 'get'");
    expect(isMap(step.observation) && step.observation.get('error')).toBe("'list' object has no attribute 'get'");
  });
});

describe('a box that dies', () => {
  const dying = (blame: 'engine' | 'action', phase: 'start' | 'run' = 'run') =>
    build('command', CONFIGS.command, {
      box: async () => {
        throw new BoxLost(phase, blame, 'runner gone', 'the runner is gone');
      },
    });

  it('under the action is a miss that ends the episode', async () => {
    const episode = await playActions(dying('action'), [['true'], ['true']]);
    expect(episode).toMatchObject({ status: 'completed', steps: 1, totalReward: -0.1, diagnostics: ['exit'] });
  });

  it('for reasons of its own is no result, with its signature', async () => {
    expect(await playActions(dying('engine'), [['true']])).toEqual({
      status: 'no_result',
      cause: 'sandbox_lost',
      detail: 'the runner is gone',
      signature: 'runner gone',
    });
  });

  it("as it did once before is the action's own doing", async () => {
    const again = await playActions(dying('engine'), [['true']], 'runner gone');
    expect(again).toMatchObject({ status: 'completed', steps: 1, totalReward: -0.1 });
    expect(await playActions(dying('engine'), [['true']], 'another')).toMatchObject({ status: 'no_result' });
  });

  it('before it was there is a failed start, whatever was known', async () => {
    const started = await playActions(dying('action', 'start'), [['true']], 'runner gone');
    expect(started).toMatchObject({ status: 'no_result', cause: 'sandbox_start' });
  });
});

async function stepOf(environment: Environment, action: Value) {
  await environment.reset(1n);
  return environment.step(action);
}
