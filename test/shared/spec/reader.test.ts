import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/shared/config.ts';
import { dumpJson, parseJson, TOO_DEEP } from '../../../src/shared/json/json.ts';
import { MAX_PROBLEMS, printProblems } from '../../../src/shared/spec/problem.ts';
import { readSpec, type SpecResult } from '../../../src/shared/spec/reader.ts';

const SECRET = 'sk-123456789012345678901234';
const GUESS = { id: 't-one', env: 'guess', config: { low: 1, high: 8, max_guesses: 4 } };
const GOOD = {
  name: 'b',
  seed: 1,
  group_size: 2,
  max_steps: 3,
  tasks: [GUESS],
  policy: { kind: 'scripted', actions: [4, 2, 6] },
};
const COMPLETIONS = { policy: { kind: 'completions', path: 'c.jsonl' } };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'farm-spec-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Files = Record<string, string | Uint8Array>;

async function read(content: string | Uint8Array, files: Files = {}): Promise<SpecResult> {
  for (const [name, body] of Object.entries({ 'bad.yaml': content, ...files }))
    await writeFile(path.join(folder, name), body);
  return readSpec(path.join(folder, 'bad.yaml'), readConfig({ FARM_DATA: path.join(folder, 'data') }));
}

/** What is said about a spec that is refused. */
async function said(content: string | Uint8Array, files: Files = {}): Promise<string> {
  const result = await read(content, files);
  return result.ok ? 'accepted' : printProblems(result.problems);
}

async function accepted(content: string, files: Files = {}) {
  const result = await read(content, files);
  if (!result.ok) throw new Error(printProblems(result.problems));
  if (result.kind !== 'run') throw new Error('not a run');
  return result;
}

function spec(change: Record<string, unknown> = {}): string {
  return JSON.stringify({ ...GOOD, ...change });
}

function jsonl(...lines: unknown[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

type Bad = [string, string | Uint8Array, RegExp[], Files?];

const BAD: Bad[] = [
  ['an unknown key', spec({ grup_size: 2 }), [/grup_size: unknown key; did you mean group_size\?/]],
  ['an unknown nested key', spec({ sandbox: { memory_mbb: 3 } }), [/sandbox\.memory_mbb: .*memory_mb/]],
  ['group_size 0', spec({ group_size: 0 }), [/group_size: must be an integer from 1 to 4096, given 0/]],
  ['group_size as text', spec({ group_size: 'eight' }), [/group_size: .* given the text "eight"/]],
  ['group_size as a float', spec({}).replace('"group_size":2', '"group_size":2.0'), [/group_size: .*given 2\.0/]],
  ['no tasks', spec({ tasks: [] }), [/tasks: needs at least one task/]],
  ['tasks missing', spec({ tasks: undefined }), [/tasks: is required/]],
  [
    'a task file that is not there',
    spec({ tasks: 'nowhere.jsonl' }),
    [/tasks: .*nowhere\.jsonl: there is no such file/],
  ],
  ['a folder as task file', spec({ tasks: '.' }), [/tasks: .*is a folder/]],
  [
    'an unknown environment',
    spec({ tasks: [{ ...GUESS, env: 'gues' }] }),
    [/tasks\[0\]\.env: .* gues; did you mean guess\?.*sql-task/],
  ],
  [
    'two tasks with one id',
    spec({ tasks: [GUESS, GUESS] }),
    [/tasks\[1\]\.id: "t-one" is already the id of tasks\[0\]/],
  ],
  [
    'a bad environment config',
    spec({ tasks: [{ ...GUESS, config: { low: 9, high: 1, max_guesses: 2 } }] }),
    [/config\.low/],
  ],
  ['an unknown config key', spec({ tasks: [{ ...GUESS, config: { ...GUESS.config, hihg: 3 } }] }), [/hihg/]],
  ['a task without config', spec({ tasks: [{ id: 'a', env: 'guess' }] }), [/tasks\[0\]\.config: is required/]],
  [
    'an unknown task key',
    spec({ tasks: [{ ...GUESS, sed: 1 }] }),
    [/tasks\[0\]\.sed: unknown key; did you mean seed\?/],
  ],
  ['a text task without a domain', spec({ tasks: [{ id: 'a', env: 'text', config: {} }] }), [/`domain`/]],
  ['verify without a domain', spec({ tasks: [{ ...GUESS, verify: true }] }), [/tasks\[0\]\.verify: .*`domain`/]],
  [
    'at_least above group_size',
    spec({ groups: { close: 'at_least', at_least: 5 } }),
    [/groups\.at_least: .*from 1 to 2, given 5/],
  ],
  [
    'refills of what a script answers',
    spec({ policy: { kind: 'scripted', actions: [1] }, groups: { refill_degenerate: 1 } }),
    [/groups\.refill_degenerate: a script answers the same again; allowed with policy\.kind scripted: 0/],
  ],
  [
    'refills of groups of one',
    spec({ group_size: 1, groups: { refill_degenerate: 1 } }),
    [/groups\.refill_degenerate: .*allowed with group_size 1: 0/],
  ],
  [
    'refills without end',
    spec({ groups: { refill_degenerate: 1001 } }),
    [/groups\.refill_degenerate: must be an integer from 0 to 1000, given 1001/],
  ],
  ['fewer refills than none', spec({ groups: { refill_degenerate: -1 } }), [/refill_degenerate: .*given -1/]],
  ['refills as text', spec({ groups: { refill_degenerate: 'all' } }), [/refill_degenerate: .*given the text "all"/]],
  ['at_least without its number', spec({ groups: { close: 'at_least' } }), [/groups\.at_least: is required/]],
  ['an infinite deadline', spec({ groups: { deadline_s: 7 } }).replace('7', '.inf'), [/groups\.deadline_s: .*finite/]],
  ['an infinite deadline in JSON', spec({ groups: { deadline_s: 7 } }).replace('7', '1e400'), [/groups\.deadline_s/]],
  ['a boolean as a number', spec({ max_steps: true }), [/max_steps: .*given true/]],
  ['files that leave no memory', spec({ sandbox: { memory_mb: 96, tmpfs_mb: 64 } }), [/sandbox\.tmpfs_mb: .*96/]],
  ['a box without a processor', spec({ sandbox: { cpus: 0.0001 } }), [/sandbox\.cpus: .*0\.01 to 1024, given 0\.0001/]],
  ...[
    'a b',
    '../x',
    'x?y=1',
    'a//b',
    'x:',
    ':x',
    'x/Upper',
    'x@sha256:12',
    'a/../b',
    'http://x/y',
    'x#y',
    '-x',
    'é',
  ].map(
    (image): Bad => [
      `the image ${image}`,
      spec({ sandbox: { image } }),
      [/sandbox\.image: must be the name of an image/],
    ],
  ),
  ['an unknown isolation', spec({ sandbox: { isolation: 'shared' } }), [/sandbox\.isolation: .*fresh.*recycled/]],
  ['a box with a network', spec({ sandbox: { network: 'bridge' } }), [/sandbox\.network: .*not built yet/]],
  ['an audit', spec({ audit: { fraction: 0.05 } }), [/audit\.fraction: .*not built yet/]],
  ['a store in no bucket', spec({ store: 's3://NO/x' }), [/store: .*not the name of a bucket/]],
  ['a store with a key in its address', spec({ store: 's3://key:secret@bucket/x' }), [/store: /]],
  ['a store with a setting that is none', spec({ store: 's3://bucket/x?colour=red' }), [/store: .*colour/]],
  ['a store of another kind', spec({ store: 'ftp://bucket/x' }), [/store: .*not known/]],
  [
    'a policy that is not built',
    spec({ policy: { kind: 'openai', model: 'm' } }),
    [/policy\.kind: openai is not built yet/],
  ],
  ['an unknown policy', spec({ policy: { kind: 'scriptd' } }), [/policy\.kind: .*scripted/]],
  ['a script without actions', spec({ policy: { kind: 'scripted', actions: [] } }), [/policy\.actions: .*empty list/]],
  ['an empty file', '', [/is empty/]],
  ['a list', '- a\n- b\n', [/is a list; a spec is a mapping/]],
  ['bytes that are not UTF-8', Buffer.from('name: \xff\xfe\n', 'latin1'), [/bad\.yaml:1: is not UTF-8/]],
  ['broken YAML', 'name: [1, 2\nseed: 3\n', [/bad\.yaml:[23]: /]],
  ['a key twice', 'name: a\nseed: 1\nseed: 2\n', [/bad\.yaml:3: the key "seed" is given twice/]],
  ['a key twice in JSON', '{"name": "a",\n"seed": 1,\n"seed": 2}', [/bad\.yaml:3: the key "seed" is given twice/]],
  ['three faults at once', spec({ group_size: 0, max_steps: -1, seed: 'x' }), [/group_size/, /max_steps/, /seed/]],
  [
    'a broken task line',
    spec({ tasks: 't.jsonl' }),
    [/t\.jsonl:3: is not JSON/],
    { 't.jsonl': `${jsonl(GUESS)}\n{"id": \n` },
  ],
  [
    'task bytes that are not UTF-8',
    spec({ tasks: 't.jsonl' }),
    [/t\.jsonl:2: .*UTF-8/],
    { 't.jsonl': Buffer.from('{}\n"\xff"\n', 'latin1') },
  ],
  [
    'completions for an unknown task',
    spec(COMPLETIONS),
    [/c\.jsonl:2: task_id: there is no task "zz-unknown"/],
    { 'c.jsonl': jsonl({ task_id: 't-one', action: 1 }, { task_id: 'zz-unknown', action: 1 }) },
  ],
  [
    'fewer completions than group_size',
    spec(COMPLETIONS),
    [/task "t-one" has 1 completion, fewer than group_size 2: .*cycle/],
    { 'c.jsonl': jsonl({ task_id: 't-one', action: 1 }) },
  ],
  [
    'faults of the spec and of its files together',
    spec({ ...COMPLETIONS, max_steps: 0, tasks: 't.jsonl' }),
    [/bad\.yaml:1: max_steps/, /t\.jsonl:1: config\.low/, /task "t-one" has 1 completion/],
    {
      't.jsonl': jsonl({ ...GUESS, config: { low: 9, high: 1, max_guesses: 4 } }),
      'c.jsonl': jsonl({ task_id: 't-one', action: 1 }),
    },
  ],
  [
    'a task without any completion, cycle or not',
    spec({ policy: { kind: 'completions', path: 'c.jsonl', cycle: true }, tasks: [GUESS, { ...GUESS, id: 'two' }] }),
    [/task "two" has 0 completions/],
    { 'c.jsonl': jsonl({ task_id: 't-one', action: 1 }) },
  ],
  [
    'a completion line with two forms',
    spec(COMPLETIONS),
    [/c\.jsonl:1: has action and completion/],
    { 'c.jsonl': jsonl({ task_id: 't-one', action: 1, completion: 'x' }) },
  ],
  [
    'a completion line that says a form twice',
    spec(COMPLETIONS),
    [/c\.jsonl:1: .*"action" is given twice/],
    { 'c.jsonl': '{"task_id": "t-one", "action": 1, "action": 2}\n' },
  ],
];

describe('a spec that cannot be used is refused with the place and the reason', () => {
  it.each(BAD)('%s', async (_, content, words, files) => {
    const message = await said(content, files);
    for (const word of words) expect(message).toMatch(word);
    expect(message.split('\n').length).toBeLessThanOrEqual(21);
  });

  it('a secret: its key and the way out are named, its value never', async () => {
    for (const policy of [
      { kind: 'openai', base_url: 'http://127.0.0.1:1/v1', model: 'm', api_key: SECRET },
      { kind: SECRET, Authorization: SECRET },
      { kind: 'completions', path: `http://user:${SECRET}@host/c`, apiKey: SECRET },
    ]) {
      const message = await said(spec({ policy, name: 'a', token: SECRET }));
      expect(message).toContain('environment variable');
      expect(message).not.toContain(SECRET);
    }
    expect(await said(spec({ policy: { kind: 'openai', api_key: SECRET } }))).toMatch(/policy\.api_key: .*environment/);
    expect(await said(`name: [${SECRET}\nseed`)).not.toContain(SECRET);
  });

  it('a task file: its line and the field', async () => {
    const lines = Array.from({ length: 4900 }, (_, i) => ({ ...GUESS, id: `t${i}` }));
    lines[4811] = { ...GUESS, id: 't4811', config: { low: 'x' as unknown as number, high: 8, max_guesses: 4 } };
    const message = await said(spec({ tasks: 'many.jsonl' }), { 'many.jsonl': jsonl(...lines) });
    expect(message).toMatch(/^.*many\.jsonl:4812: config\.low: .*$/);
  });

  it('very many problems: the first twenty, and how many more', async () => {
    const tasks = Array.from({ length: 300 }, (_, i) => ({ ...GUESS, id: `t${i}`, env: 'gues' }));
    const message = await said(spec({ tasks }));
    expect(message.split('\n')).toHaveLength(21);
    expect(message).toMatch(/… and 280 more$/);
  });

  it('as many of them as are asked for, each with its place', async () => {
    const tasks = Array.from({ length: 300 }, (_, i) => ({ ...GUESS, id: `t${i}`, env: 'gues' }));
    const result = await read(spec({ tasks }));
    const lines = printProblems(result.ok ? [] : result.problems, MAX_PROBLEMS).split('\n');
    expect(lines).toHaveLength(300);
    for (const [i, line] of lines.entries())
      expect(line).toMatch(new RegExp(`bad\\.yaml:1:\\d+: tasks\\[${i}\\]\\.env`));
  });

  it('the column in a line that is too long to be looked through, and there alone', async () => {
    const text = spec({ tasks: [{ ...GUESS, env: 'gues', prompt: 'x'.repeat(200) }] });
    expect(await said(text)).toContain(`bad.yaml:1:${text.indexOf('"env"') + 1}: tasks[0].env: `);
    expect(await said(JSON.stringify(JSON.parse(text), null, 1))).toMatch(/bad\.yaml:\d+: tasks\[0\]\.env: /);
    const broken = `${' '.repeat(300)}{"id": }`;
    expect(await said(spec({ tasks: 't.jsonl' }), { 't.jsonl': broken })).toContain('t.jsonl:1:308: is not JSON');
  });

  it('a task that is JSON and beyond what is read, as that', async () => {
    const deep = `{"id": "a", "env": "guess", "prompt": null, "metadata": {"a": ${'['.repeat(900)}${']'.repeat(900)}}}`;
    const message = await said(spec({ tasks: 't.jsonl' }), { 't.jsonl': deep });
    expect(message).toMatch(/t\.jsonl:1:\d+: the line cannot be read: nested deeper than 850 levels$/);
  });

  it('the line of a field in YAML', async () => {
    const yaml =
      'name: a\ngroup_size: 2\ngroups:\n  refill: -1\ntasks:\n  - {id: a, env: guess, config: {}}\n  - id: b\n    env: no\n';
    const lines = (await said(yaml)).split('\n').map((line) =>
      line
        .replace(/^.*bad\.yaml:/, '')
        .split(': ', 2)
        .join(' '),
    );
    // What is not there has the place of what it is missing from.
    expect(lines).toEqual(['1 policy', '4 groups.refill', '8 tasks[1].env']);
  });
});

describe('a spec that can be used', () => {
  it('has the defaults of the interface', async () => {
    const { spec: run, source } = await accepted(
      'name: x\ngroup_size: 3\ntasks: [{id: a, env: guess, config: {low: 1, high: 2, max_guesses: 2}}]\npolicy: {kind: scripted, actions: [1]}\n',
    );
    const { document: _, ...rest } = run;
    expect(rest).toEqual({
      name: 'x',
      seed: 0n,
      groupSize: 3,
      maxSteps: 10,
      groups: { close: 'all', atLeast: null, deadlineS: 600, refill: 2, refillDegenerate: 0 },
      sandbox: {
        image: 'rollout-farm/python',
        memoryMb: 256,
        cpus: 1,
        pids: 128,
        tmpfsMb: 64,
        network: 'none',
        timeoutS: 10,
        outputKb: 256,
        exec: true,
        runtime: null,
        isolation: 'fresh',
      },
      store: path.join(folder, 'data', 'store'),
      advantage: 'trl',
      limits: { inFlight: 512, verifierCalls: null, policyTokens: null, pausedS: 3600 },
      verifier: null,
    });
    expect([source.count, source.verified, [...source.environments]]).toEqual([1, 0, ['guess']]);
  });

  it.each([
    'python',
    'rollout-farm/python',
    'python:3.12-slim',
    'registry.example.com:5000/team/a__b.c--d:V1_x',
    'localhost/x',
    '[::1]:5000/x:1',
    `python@sha256:${'a'.repeat(64)}`,
    `sha256:${'0'.repeat(64)}`,
    '0123456789ab',
  ])('may name the image %s', async (image) => {
    expect((await accepted(spec({ sandbox: { image } }))).spec.sandbox.image).toBe(image);
  });

  it('finds its files beside itself, and its store', async () => {
    const files = {
      't.jsonl': jsonl(GUESS),
      'c.jsonl': jsonl({ task_id: 't-one', action: 1 }, { task_id: 't-one', action: 2 }),
    };
    const { spec: run } = await accepted(spec({ ...COMPLETIONS, tasks: 't.jsonl', store: './s' }), files);
    expect(run.store).toBe(path.join(folder, 's'));
  });

  it('gives each member its line, the first ones again with cycle, and warns of what is left', async () => {
    const other = { ...GUESS, id: 'two', seed: 9 };
    const files = {
      'c.jsonl': jsonl(
        { task_id: 'two', actions: [1, 2], label: 'x' },
        { task_id: 't-one', action: 1 },
        { task_id: 't-one', completion: 'b' },
        { task_id: 't-one', action: 3 },
      ),
    };
    const policy = { kind: 'completions', path: 'c.jsonl', cycle: true };
    const { source, warnings } = await accepted(spec({ policy, tasks: [GUESS, other] }), files);
    const tasks = [...source.tasks()];
    expect(tasks.map((task) => [task.id, task.seed])).toEqual([
      ['t-one', 1n],
      ['two', 9n],
    ]);
    expect(tasks[0]?.plays).toEqual([
      { kind: 'actions', actions: [1n] },
      { kind: 'completion', completion: 'b' },
    ]);
    expect(tasks[1]?.plays.map((play) => play.kind === 'actions' && play.actions)).toEqual([
      [1n, 2n],
      [1n, 2n],
    ]);
    expect(warnings.join()).toMatch(/1 line is left unused, beyond group_size 2 \(t-one\)/);
  });

  it('counts what degenerate groups may be refilled with, and warns where there is nothing', async () => {
    const policy = { kind: 'completions', path: 'c.jsonl' };
    const lines = (count: number) => ({
      'c.jsonl': jsonl(...Array.from({ length: count }, (_, action) => ({ task_id: 't-one', action }))),
    });
    const groups = { refill_degenerate: 1 };
    expect((await accepted(spec({ policy, groups }), lines(4))).warnings).toEqual([]);
    expect((await accepted(spec({ policy, groups }), lines(5))).warnings.join()).toMatch(
      /1 line is left unused, beyond group_size 2 and whole groups to refill with \(t-one\)/,
    );
    expect((await accepted(spec({ policy, groups }), lines(2))).warnings.join()).toMatch(
      /refill_degenerate has nothing to refill with: no task in .* has 4 lines/,
    );
  });

  it('is another spec with refills of degenerate groups, and the same one where none are asked for', async () => {
    const policy = { kind: 'completions', path: 'c.jsonl' };
    const files = { 'c.jsonl': jsonl(...[1, 2, 3, 4].map((action) => ({ task_id: 't-one', action }))) };
    const documentOf = async (groups: Record<string, unknown>): Promise<string> =>
      dumpJson((await accepted(spec({ policy, groups }), files)).spec.document);
    expect(await documentOf({ refill_degenerate: 0 })).toBe(await documentOf({}));
    expect(await documentOf({})).not.toContain('refill_degenerate');
    expect(await documentOf({ refill_degenerate: 2 })).toContain('"refill_degenerate": 2');
  });

  it('takes whatever a completion contains', async () => {
    const lines = [
      '{"task_id": "t-one", "completion": "\\ud800 \\u0000"}',
      '{"task_id": "t-one", "action": {"a": 1, "a": [1.0, NaN, null, true]}}',
    ];
    const { source } = await accepted(spec(COMPLETIONS), { 'c.jsonl': lines.join('\n') });
    const [first, second] = [...source.tasks()][0]?.plays ?? [];
    expect(first).toEqual({ kind: 'completion', completion: '\ud800 \0' });
    expect(second).toEqual({ kind: 'actions', actions: [new Map([['a', [1, Number.NaN, null, true]]])] });
  });

  it('takes an action that is nested too deeply, or holds an integer of very many digits, as one that misses', async () => {
    const deep = (n: number) => `${'[{"a": ['.repeat(n)}-1e3, "]"${']}, {}]'.repeat(n)}`;
    const lines = [
      `{"task_id": "t-one", "actions": [${deep(1_000)}, ${'['.repeat(100_000)}${']'.repeat(100_000)}, 4]}`,
      `{"task_id": "t-one", "actions": [1${'0'.repeat(5_000)}, [-1${'0'.repeat(5_000)}]]}`,
    ];
    const { source } = await accepted(spec(COMPLETIONS), { 'c.jsonl': lines.join('\n') });
    const [first, second] = [...source.tasks()][0]?.plays ?? [];
    expect(second).toEqual({
      kind: 'actions',
      actions: [Number.POSITIVE_INFINITY, [Number.NEGATIVE_INFINITY]],
    });
    const actions = first?.kind === 'actions' && Array.isArray(first.actions) ? first.actions : [];
    expect(actions).toHaveLength(3);
    expect(actions[2]).toBe(4n);
    expect(dumpJson(actions[0] ?? null)).toContain(`${JSON.stringify(TOO_DEEP)}]}, {}]`);
    expect(dumpJson(actions[1] ?? null)).toMatch(/^\[{840,850}"\(nested too deeply\)"\]+$/);
    // What stands in a plan and in a trajectory can be read again.
    expect(parseJson(dumpJson(actions))).toEqual(actions);
  });

  it.each(['[1, 2}', '{"a" 1}', '{"a": 1,}', '[1 2]', '[', '[tru]', '{1: 2}'])(
    'takes no completion whose depth hides what is not JSON: %s',
    async (inner) => {
      const line = `{"task_id": "t-one", "action": ${'['.repeat(900)}${inner}${']'.repeat(900)}}`;
      expect(await said(spec(COMPLETIONS), { 'c.jsonl': line })).toMatch(/c\.jsonl:1:\d+: is not JSON/);
    },
  );

  it('says which verifier grades its texts', async () => {
    const tasks = [
      { id: 'a', env: 'text', config: {}, prompt: [{ role: 'user', content: 'x' }] },
      { ...GUESS, verify: true },
      { ...GUESS, id: 'c' },
    ];
    const { spec: run, source } = await accepted(spec({ tasks, domain: { platform_id: 1 } }));
    expect(run.verifier?.platformId).toBe(1n);
    expect(source.verified).toBe(2);
  });

  it('may be a config of a verifier alone', async () => {
    const result = await read(
      'domain: {platform_id: 77}\nreward: {clip: [-2, 2]}\ntraining: {framework: f, model: m}\n',
    );
    expect(result).toMatchObject({ ok: true, kind: 'verifier', verifier: { platformId: 77n, clip: [-2, 2] } });
    expect(await said('domain: {platform_id: 77}\nrewards: {}\n')).toMatch(
      /bad\.yaml:2: rewards: unknown key; did you mean reward\?/,
    );
    expect(await said('reward: {}\n')).toMatch(/domain: is required/);
  });
});

describe('the document of a run', () => {
  const files = { 't.jsonl': jsonl(GUESS), 'u.jsonl': jsonl(GUESS) };
  const document = async (content: string, more: Files = {}) =>
    dumpJson((await accepted(content, { ...files, ...more })).spec.document);

  it('is the same for the same content, wherever it stands and however it is written', async () => {
    const first = await document(spec({ tasks: 't.jsonl' }));
    expect(await document(spec({ tasks: 'u.jsonl', store: 'elsewhere', max_steps: 3, advantage: 'trl' }))).toBe(first);
    expect(await document(`# YAML\n${spec({ tasks: 't.jsonl' })}`)).toBe(first);
  });

  it('differs with a seed, a task or an action', async () => {
    const first = await document(spec({ tasks: 't.jsonl' }));
    expect(await document(spec({ tasks: 't.jsonl', seed: 2 }))).not.toBe(first);
    expect(await document(spec({ tasks: 't.jsonl', policy: { kind: 'scripted', actions: [4] } }))).not.toBe(first);
    expect(await document(spec({ tasks: 't.jsonl' }), { 't.jsonl': jsonl({ ...GUESS, seed: 3 }) })).not.toBe(first);
  });
});
