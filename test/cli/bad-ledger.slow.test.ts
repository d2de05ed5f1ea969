// What is not of this run, or not of this version, from outside: by the command line and over HTTP. Each is refused with its
// code, its cause and the next step, and everything beside it goes on.

import { Queue } from 'bullmq';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runKey } from '../../src/shared/ledger/script.ts';
import { TestFarm } from '../support/farm.ts';
import { call, post } from '../support/gateway-fixture.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';
import { quickSpec } from '../support/run-specs.ts';
import { guessTasks } from '../support/spec.ts';
import { until } from '../support/until.ts';

const SPEC = { name: 'net', group_size: 2, tasks: guessTasks(3), policy: { kind: 'scripted', actions: [4, 2, 6, 1] } };

let server: TestRedis;
let farm: TestFarm;
let url: string;

const state = async (run: string): Promise<string> => (await call(`${url}/v1/runs/${run}`)).json.state as string;
const done = (run: string) => until(`${run} is done`, async () => (await state(run)) === 'done', { withinMs: 60_000 });
const submit = (run: string, change: object = {}) => post(`${url}/v1/runs?run_id=${run}`, { ...SPEC, ...change });
const cursorsOf = async (run: string): Promise<string[]> =>
  (await farm.run('results', run)).stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => (JSON.parse(line) as { cursor: string }).cursor);

beforeAll(async () => {
  server = await startRedis();
  farm = new TestFarm({ REDIS_URL: `unix://${server.place.options.path}` });
  const serve = farm.start('serve', '--port', '0');
  const roles = [farm.start('worker', 'rollout', '--concurrency', '2'), farm.start('worker', 'collect')];
  url = await until('the gateway says where it is', () => /^http:\S+/.exec(serve.stdout)?.[0], { withinMs: 60_000 });
  for (const role of roles) await until('it is ready', () => role.stderr.includes('"ready"'), { withinMs: 60_000 });
  for (const run of ['one', 'two']) expect((await submit(run)).status).toBe(201);
  await done('one');
  await done('two');
});
afterAll(async () => {
  await farm.close();
  await server.close();
});

/** Both doors refuse it in the same words. */
async function refused(args: string[], http: { path: string; method?: string; body?: unknown }, want: Refusal) {
  const ended = await farm.run(...args);
  expect(ended, args.join(' ')).toMatchObject({ code: want.exit, stdout: '' });
  const said = ended.stderr;
  const reply =
    http.body === undefined
      ? await call(url + http.path, { method: http.method ?? 'GET' })
      : await post(url + http.path, http.body);
  expect([reply.status, reply.json.error.code], http.path).toEqual([want.status, want.code]);
  for (const text of [said, `${reply.json.error.message} ${reply.json.error.hint}`])
    for (const word of want.says) expect(text).toMatch(word);
  expect(said).not.toMatch(/^\s+at .*\(|node:internal/m);
}

interface Refusal {
  exit: number;
  status: number;
  code: string;
  says: RegExp[];
}

describe('a cursor', () => {
  const cases: [string, (own: string[], other: string[]) => string, string, RegExp][] = [
    ['of another run', (_, other) => other[0] as string, 'cursor', /not one of this run/],
    [
      'of the future',
      (own) => (own[0] as string).replace(/\d+$/, '99'),
      'cursor',
      /of the future: 3 groups are closed/,
    ],
    ['that is none', () => 'yesterday', 'cursor', /not one of this run/],
    [
      'of a group that was lost',
      (own) => (own[1] as string).replace(/\.[0-9a-f]{8}-/, '.00000000-'),
      'cursor_lost',
      /earlier cursor/,
    ],
  ];
  it.each(cases)('%s is refused', async (_, of, code, says) => {
    const cursor = of(await cursorsOf('one'), await cursorsOf('two'));
    const path = `/v1/runs/one/results?after=${encodeURIComponent(cursor)}`;
    await refused(
      ['results', 'one', '--after', cursor],
      { path },
      { exit: 2, status: 400, code, says: [says, /cursor/] },
    );
  });

  it('of a run that was removed and run anew under its id is refused', async () => {
    expect((await submit('again')).status).toBe(201);
    await done('again');
    const [before] = (await cursorsOf('again')) as [string];
    expect((await farm.run('rm', 'again')).code).toBe(0);
    expect((await submit('again')).status).toBe(201);
    await done('again');
    const path = `/v1/runs/again/results?after=${encodeURIComponent(before)}`;
    const want = { exit: 2, status: 400, code: 'cursor', says: [/not one of this run/] };
    await refused(['results', 'again', '--after', before], { path }, want);
  });

  it('that is older than what Redis has is gone on from in the store', async () => {
    // The stream is trimmed to the committed shards: nothing of a finished run is left in it.
    expect(await server.redis.xlen(`${runKey('one')}:out`)).toBe(0);
    const cursors = await cursorsOf('one');
    const { text } = await call(`${url}/v1/runs/one/results?after=${encodeURIComponent(cursors[0] as string)}`);
    expect(
      text
        .split('\n')
        .filter(Boolean)
        .map((line) => (JSON.parse(line) as { cursor: string }).cursor),
    ).toEqual(cursors.slice(1));
  });
});

describe('a group that is closed, and neither in Redis nor in the store', () => {
  it('is named, where results would end before it as if all were told', async () => {
    expect((await submit('hole')).status).toBe(201);
    await done('hole');
    await server.redis.hincrby(`${runKey('hole')}:run`, 'closed', 1);
    const ended = await farm.run('results', 'hole');
    expect(ended.code).toBe(3);
    expect(ended.stderr).toMatch(/group number 4 of run hole is closed, and neither in Redis nor in the shards/);
  });
});

describe('a run of another version of the ledger', () => {
  beforeAll(async () => {
    expect((await submit('old')).status).toBe(201);
    await done('old');
    const driver = () => server.redis.hget(`${runKey('old')}:run`, 'driver');
    await until('nobody drives it any more', async () => (await driver()) === null);
    await server.redis.hdel(`${runKey('old')}:run`, 'version');
  });

  const want = { code: 'ledger_version', exit: 2, says: [/another version of the farm/, /layout 1/, /farm rm old/] };
  const spec = (): string => farm.file('old.json', SPEC);
  it.each<[string, () => string[], { path: string; method?: string; body?: unknown }]>([
    ['its status', () => ['status', 'old'], { path: '/v1/runs/old' }],
    ['its results', () => ['results', 'old'], { path: '/v1/runs/old/results' }],
    ['a cancel', () => ['cancel', 'old'], { path: '/v1/runs/old', method: 'DELETE' }],
    [
      'the same spec again',
      () => ['run', spec(), '--run-id', 'old', '--detach'],
      { path: '/v1/runs?run_id=old', body: SPEC },
    ],
  ])('is refused: %s', async (_, args, http) => {
    const before = await server.redis.hgetall(`${runKey('old')}:run`);
    await refused(args(), http, { ...want, status: 409 });
    expect(await server.redis.hgetall(`${runKey('old')}:run`)).toEqual(before);
  });

  it('hides no other one, and can be removed', async () => {
    for (const verb of ['runs', 'status']) {
      const rows = JSON.parse((await farm.run(verb, '--json')).stdout) as {
        run: string;
        state: string;
        reason?: string;
      }[];
      expect(rows.find((row) => row.run === 'old')).toMatchObject({
        state: 'stopped',
        reason: expect.stringMatching(/another version/),
      });
      expect(rows.find((row) => row.run === 'one')).toMatchObject({ state: 'done' });
    }
    const listed = (await call(`${url}/v1/runs`)).json.runs as { run: string }[];
    expect(listed.map((row) => row.run)).toEqual(expect.arrayContaining(['old', 'one', 'two']));
    expect((await farm.run('verify-run', 'old')).code).toBe(0);
    expect((await farm.run('rm', 'old')).code).toBe(0);
    expect((await submit('old')).status).toBe(201);
    await done('old');
  });
});

describe('the same id', () => {
  it('with a changed spec is refused, showing what differs', async () => {
    const changed = { ...SPEC, seed: 8, group_size: 3 };
    const file = farm.file('changed.json', changed);
    const want = {
      exit: 2,
      status: 409,
      code: 'spec_changed',
      says: [/seed: 0 → 8/, /group_size: 2 → 3/, /another --run-id/],
    };
    await refused(['run', file, '--run-id', 'one', '--detach'], { path: '/v1/runs?run_id=one', body: changed }, want);
    expect(await state('one')).toBe('done');
  });

  it('from two producers at one moment is one run, of one of the two specs', async () => {
    const replies = await Promise.all([1, 2, 3, 4].map((seed) => submit('twins', { seed })));
    const taken = replies.filter((reply) => reply.status < 300);
    const others = replies.filter((reply) => reply.status >= 300);
    expect(taken).toHaveLength(1);
    for (const reply of others) {
      expect(reply.status).toBe(409);
      expect(['spec_changed', 'run_busy']).toContain(reply.json.error.code);
    }
    await done('twins');
    expect((await farm.run('verify-run', 'twins')).code).toBe(0);
  });
});

describe('jobs that are not ours, in our queues', () => {
  it('are left alone or dropped: a run beside them has its members once, and no others', async () => {
    const prefix = '{farm:shared}';
    const strange: unknown[] = [
      null,
      'a text',
      [],
      { run: 'one' },
      { run: 'nobody', stage: 'rollout', members: [[0, 0]] },
      { run: 'strange', stage: 'rollout', members: [[9_999, 0]] },
      { run: 'strange', stage: 'rollout', members: [[0, 9_999]] },
      { run: 'strange', stage: 'verify', members: [[0, 0]] },
      {
        run: 'strange',
        stage: 'rollout',
        members: [
          [0, 0],
          [0, 0],
          [0, 1],
        ],
      },
      { run: 'one', stage: 'rollout', members: [[0, 0]] },
      // As an older farm queued one.
      { run: 'strange', stage: 'rollout', group: 0, member: 1 },
    ];
    const queues = ['rollout-v1', 'rollout-v2', 'light-v2', 'verify-v2'].map(
      (name) => new Queue(name, { connection: { path: server.place.options.path as string }, prefix }),
    );
    const pour = () => Promise.all(queues.map((q) => q.addBulk(strange.map((data) => ({ name: 'job', data })))));
    await pour();
    expect((await submit('strange', { tasks: guessTasks(40) })).status).toBe(201);
    await pour();
    await done('strange');
    const status = (await call(`${url}/v1/runs/strange`)).json;
    expect(status.members).toMatchObject({ planned: 80, accepted: 80, completed: 80, no_result: 0 });
    expect((await farm.run('verify-run', 'strange')).code).toBe(0);
    expect(await state('one')).toBe('done');
    // Of another payload's major: nobody of ours takes it.
    expect(await queues[0]?.getWaitingCount()).toBe(2 * strange.length);
    for (const q of queues) await q.obliterate({ force: true }).finally(() => q.close());
  });
});

describe('a command beside all this', () => {
  it('goes its way', async () => {
    expect(await farm.run('run', quickSpec(farm), '--run-id', 'beside')).toMatchObject({ code: 0, stdout: 'beside\n' });
  });
});
