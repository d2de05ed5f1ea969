// What the environments promise beyond the reference's cases: timeouts, caps, hidden files, goals, completions.

import { describe, expect, it } from 'vitest';
import { dumpJson } from '../../../src/shared/json/json.ts';
import { mapOf, type Value } from '../../../src/shared/json/value.ts';
import type { Box } from '../../../src/shared/sandbox.ts';
import { runEpisode } from '../../../src/workers/rollout/episode.ts';
import { completionPolicy } from '../../../src/workers/rollout/policies/completions.ts';
import { givenPolicy } from '../../../src/workers/rollout/policies/given.ts';
import { scriptedPolicy } from '../../../src/workers/rollout/policies/scripted.ts';
import { build, playActions, testContext } from './test-context.ts';

const SQL = {
  schema_sql: 'CREATE TABLE t (a);',
  seed_sql: 'INSERT INTO t VALUES (1);',
  task: 't',
  expected_rows: [[2]],
};
const HANGING = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';

async function steps(name: string, config: unknown, actions: Value[], options = {}) {
  const episode = await playActions(build(name, config, options), actions);
  if (episode.status !== 'completed') throw new Error(`${episode.status}: ${episode.detail}`);
  const seen = [
    ...episode.trajectory.transitions.slice(1).map((t) => t.observation),
    episode.trajectory.finalObservation,
  ];
  return { ...episode, seen };
}

describe('sql-task', () => {
  it('kills a query that hangs, and goes on without it', async () => {
    const played = await steps('sql-task', SQL, ['UPDATE t SET a = 2', HANGING, 'SELECT a FROM t'], {
      stepTimeoutMs: 3_000,
    });
    expect(played.seen[1]).toEqual(mapOf({ error: 'timed out after 3s' }));
    expect(played).toMatchObject({ steps: 3, totalReward: 0.8, diagnostics: ['timeout'] });
  });

  it('makes a miss of rows beyond the output cap', async () => {
    const rows = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n';
    const played = await steps('sql-task', SQL, [rows], { outputBytes: 1_000 });
    expect(played).toMatchObject({ totalReward: -0.1, diagnostics: ['output'] });
    expect(played.seen[0]).toEqual(mapOf({ error: 'more than 1000 bytes of rows' }));
  });

  it('does not meet a file that an earlier query left', async () => {
    const attach = "ATTACH 'left.db' AS x";
    const played = await steps('sql-task', SQL, [
      attach,
      'CREATE TABLE x.y (a)',
      'INSERT INTO x.y VALUES (2)',
      'SELECT a FROM x.y',
    ]);
    expect(played.totalReward).toBe(1 - 3 * 0.1);
  });

  it('blames a schema that fails on the task', async () => {
    const episode = await playActions(build('sql-task', { ...SQL, schema_sql: 'CREATE TABEL' }), ['SELECT 1']);
    expect(episode).toMatchObject({ status: 'no_result', cause: 'environment_error' });
  });

  it('blames a schema that hangs on the task', async () => {
    const slow = build('sql-task', { ...SQL, schema_sql: `CREATE TABLE s AS ${HANGING};` }, { stepTimeoutMs: 700 });
    expect(await playActions(slow, ['SELECT 1'])).toMatchObject({ status: 'no_result', cause: 'environment_error' });
  });
});

describe('command', () => {
  const config = { files: {}, task: 't', expected_stdout: 'x', timeout: 0.3 };

  it("has the smaller of its own timeout and the sandbox's", async () => {
    const own = await steps('command', config, [['sleep', '20']]);
    expect(own.seen[0]).toEqual(mapOf({ stdout: '', stderr: 'timed out after 0.3s', exit_code: -1n }));
    expect(own.diagnostics).toEqual(['timeout']);
    const sandbox = await steps('command', { ...config, timeout: 30 }, [['sleep', '20']], { stepTimeoutMs: 200 });
    expect(sandbox.seen[0]).toEqual(mapOf({ stdout: '', stderr: 'timed out after 0.2s', exit_code: -1n }));
  });

  it('cuts output at the cap, between characters, and lets none of it match', async () => {
    const played = await steps('command', { ...config, timeout: 30, expected_stdout: 'éé' }, [['printf', 'ééééé']], {
      outputBytes: 5,
    });
    expect(played).toMatchObject({ totalReward: -0.1, diagnostics: ['output'] });
    expect(played.seen[0]).toEqual(mapOf({ stdout: 'éé', stderr: '', exit_code: 0n }));
  });
});

describe('code-task', () => {
  const check = { command: ['/usr/bin/python3', 'test.py'], files: { 'test.py': 'import a\nassert a.x == 2\n' } };
  const config = { files: { 'a.py': 'x = 1\n' }, task: 't', check };

  it('grades with hidden files that no edit can replace and no observation shows', async () => {
    for (const cheat of ['test.py', 'test.py/x']) {
      const played = await steps('code-task', config, [mapOf({ [cheat]: '' }), mapOf({ 'a.py': 'x = 2\n' })]);
      expect(played).toMatchObject({ steps: 2, totalReward: 0.9 });
      expect(played.seen.map((observation) => dumpJson(observation ?? null)).join()).not.toContain('assert a.x');
    }
  });

  it('says which grades its check can have, and of a plain subprocess that it was only the exit', async () => {
    const environment = build('code-task', config);
    expect([environment.grade, environment.warm]).toEqual(['apart', null]);
    expect(await playActions(environment, [mapOf({ 'a.py': 'x = 2\n' })])).toMatchObject({ totalReward: 1 });
    expect(environment.grade).toBe('exit');
    const warm = build('code-task', { ...config, check: { ...check, kind: 'in-process', warm: 'python3' } });
    expect([warm.grade, warm.warm]).toEqual(['in-process', 'python3']);
    expect(await playActions(warm, [mapOf({ 'a.py': 'x = 2\n' })])).toMatchObject({ totalReward: 1 });
    expect([warm.grade, warm.warm]).toEqual(['exit', null]);
  });

  it('is no result where the interpreter of its check cannot be started: that is nobody’s edit', async () => {
    const none = { ...check, command: ['/no/such/python3', 'test.py'] };
    const episode = await playActions(build('code-task', { ...config, check: none }), [mapOf({ 'a.py': 'x = 2\n' })]);
    expect(episode).toMatchObject({ status: 'no_result', cause: 'environment_error' });
  });

  it('fails an edit that leaves the folder, without a box', async () => {
    const noBox = { box: async (): Promise<Box> => Promise.reject(new Error('no box is needed')) };
    const played = await steps('code-task', config, [mapOf({ '../evil': 'x' })], noBox);
    expect(played).toMatchObject({ totalReward: -0.1, diagnostics: ['escape'] });
  });
});

describe('terminal', () => {
  const config = {
    files: { 'a/b.txt': 'x\n' },
    task: 't',
    goal: {
      all: [
        { kind: 'no_file', path: 'a/b.txt' },
        { kind: 'file_contains', path: 'c', needle: 'x' },
      ],
    },
  };

  it('keeps its folder over the steps and judges the files', async () => {
    const played = await steps('terminal', config, [
      ['cp', 'a/b.txt', 'c'],
      ['rm', 'a/b.txt'],
    ]);
    expect(played).toMatchObject({ steps: 2, totalReward: 0.95 });
  });

  it('lets nothing go on between two steps', async () => {
    const later = ['sh', '-c', '(sleep 0.4; touch late) >/dev/null 2>&1 &'];
    const played = await steps('terminal', { ...config, goal: { kind: 'has_file', path: 'late' } }, [
      later,
      ['sleep', '0.8'],
      ['true'],
    ]);
    expect(played.totalReward).toBeCloseTo(-0.15);
  });
});

describe('text', () => {
  it('is one step without a reward of its own', async () => {
    const played = await steps('text', {}, ['any words', 'never played']);
    expect(played).toMatchObject({ steps: 1, totalReward: 0, lastAction: 'any words' });
  });
});

describe('a completion', () => {
  const block = 'I think\n```sql\nSELECT 1\n```\nor rather\n```\nSELECT 2\n```\nDone.';
  it.each<[string, unknown, string, Value]>([
    ['guess', {}, 'it is\n```\n42\n```', '42'],
    ['guess', {}, ' 42 ', ' 42 '],
    ['sql-task', SQL, block, 'SELECT 2'],
    ['sql-task', SQL, 'cut off\n```sql\nSELECT 3', 'SELECT 3'],
    ['sql-task', SQL, '~~~\n```\n~~~~', '```'],
    ['command', { files: {}, task: 't', expected_stdout: '' }, '```json\n["ls", "-l"]\n```', ['ls', '-l']],
    ['command', { files: {}, task: 't', expected_stdout: '' }, 'ls -l | wc', ['sh', '-c', 'ls -l | wc']],
    ['command', { files: {}, task: 't', expected_stdout: '' }, '["ls", 1]', ['sh', '-c', '["ls", 1]']],
    [
      'code-task',
      { files: { 'z.py': '', 'a.py': '' }, task: 't', check: { command: ['true'] } },
      '```python\nx = 1\n```',
      mapOf({ 'z.py': 'x = 1\n' }),
    ],
    [
      'code-task',
      { files: { 'z.py': '' }, task: 't', check: { command: ['true'] } },
      '{"b.py": "y"}',
      mapOf({ 'b.py': 'y' }),
    ],
    [
      'http-task',
      { recording: {}, task: 't', expected_body: 1 },
      'POST /x\nbody',
      mapOf({ method: 'POST', path: '/x' }),
    ],
    ['http-task', { recording: {}, task: 't', expected_body: 1 }, '{"path": "/y"}', mapOf({ path: '/y' })],
    ['text', {}, block, block],
  ])('for %s is read by its own parser', (name, config, text, action) => {
    expect(build(name, config).parseCompletion(text)).toEqual(action);
  });
});

describe('a policy', () => {
  const { signal } = new AbortController();

  it('plays given actions, or one completion as text or messages, and ends', async () => {
    const environment = build('guess', {});
    const messages = [mapOf({ role: 'assistant', content: '```\n7\n```' })];
    for (const [policy, action] of [
      [completionPolicy('7', environment), '7'],
      [completionPolicy(messages, environment), '7'],
      [completionPolicy(7.5, environment), 7.5],
      [
        await givenPolicy(
          { kind: 'actions', actions: { inline: [1n] } },
          async (held) => ('inline' in held ? held.inline : null),
          environment,
        ),
        1n,
      ],
    ] as const) {
      expect(await policy.act(null, signal)).toEqual({ action });
      expect(await policy.act(null, signal)).toEqual({ end: true });
    }
  });

  it('without a single action is no result', async () => {
    expect(await playActions(build('guess', {}), [])).toMatchObject({ status: 'no_result', cause: 'policy_rejected' });
  });
});

describe('an episode', () => {
  it('ends at max_steps', async () => {
    const episode = await runEpisode({
      environment: build('guess', {}),
      seed: 1n,
      policy: scriptedPolicy([1n, 2n, 3n]),
      maxSteps: 2,
      signal: testContext().signal,
      knownSignature: null,
    });
    expect(episode).toMatchObject({ status: 'completed', steps: 2 });
  });

  it('throws the reason when it is told to end', async () => {
    const stop = new AbortController();
    const reason = new Error('superseded');
    const environment = build('command', { files: {}, task: 't', expected_stdout: 'x' }, { signal: stop.signal });
    const playing = runEpisode({
      environment,
      seed: 1n,
      policy: scriptedPolicy([['sleep', '20']]),
      maxSteps: 1,
      signal: stop.signal,
      knownSignature: null,
    });
    setTimeout(() => stop.abort(reason), 100);
    await expect(playing).rejects.toBe(reason);
  });
});
