// `farm export`: what a trainer loads is what the run earned, in every format, and a dataset is whole or not there.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GroupRecord } from '../../src/shared/group.ts';
import { TestFarm } from '../support/farm.ts';
import { quickSpec } from '../support/run-specs.ts';
import { until } from '../support/until.ts';

let farm: TestFarm;
const groups = new Map<string, GroupRecord[]>();
const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const out = (name: string): string => path.join(farm.data, name);

beforeAll(async () => {
  farm = new TestFarm();
  const simulator = farm.start('simulate');
  const url = await until('the simulator is ready', () => simulator.stdout.split('\n')[0]);
  Object.assign(farm.env, { AMBERTRACE_BASE_URL: url, AMBERTRACE_API_KEY: 'at_local' });
  const text = farm.file('text.json', {
    name: 'text',
    group_size: 2,
    tasks: [
      { id: 'plain', env: 'text', config: {}, prompt: 'A baker of 34.', metadata: { gold: 'deny' } },
      { id: 'chat', env: 'text', config: {}, prompt: [{ role: 'user', content: 'And é?' }] },
      {
        id: 'both',
        env: 'guess',
        config: { low: 1, high: 7, max_guesses: 3 },
        verify: true,
        metadata: { gold: 'deny' },
      },
    ],
    policy: { kind: 'scripted', actions: ['<decision>{"classification": "deny", "facts": {}}</decision>'] },
    domain: { platform_id: 1, parser: 'json_block' },
  });
  for (const [run, spec] of [
    ['quick', quickSpec(farm)],
    ['text', text],
  ] as const) {
    expect(await farm.run('run', spec, '--run-id', run)).toMatchObject({ code: 0 });
    groups.set(
      run,
      (await farm.run('results', run)).stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as GroupRecord),
    );
  }
  simulator.process.kill('SIGTERM');
  await simulator.ended;
});
afterAll(async () => {
  await farm.nothingLeft();
  await farm.close();
});

const completed = (run: string) =>
  (groups.get(run) ?? []).flatMap((group) =>
    group.members.flatMap((member) => (member.status === 'completed' ? [{ group, member }] : [])),
  );

describe('a run as a dataset', () => {
  it('is one record a step, and a member’s records sum up to its reward', async () => {
    for (const run of ['quick', 'text']) {
      const ended = await farm.run('export', run, '--format', 'records', '--out', out(`${run}.jsonl`), '--json');
      expect(ended).toMatchObject({ code: 0 });
      const members = completed(run);
      const records = linesOf(out(`${run}.jsonl`));
      expect(JSON.parse(ended.stdout)).toMatchObject({ episodes: members.length, records: records.length });
      expect(records.length).toBe(members.reduce((sum, { member }) => sum + member.steps, 0));
      let at = 0;
      for (const { member } of members) {
        const mine = records.slice(at, at + member.steps);
        at += member.steps;
        expect(mine.map((record) => record.step)).toEqual(mine.map((_, step) => step));
        const total = mine.reduce((sum, record) => sum + (record.reward as number), 0);
        expect(total).toBeCloseTo(member.reward, 12);
      }
    }
  });

  it('has the prompt that the policy saw also where an episode observes nothing', async () => {
    await farm.run('export', 'text', '--format', 'prompts', '--out', out('prompts.jsonl'));
    const prompts = linesOf(out('prompts.jsonl'));
    const order = completed('text').map(({ group }) => group.task_id);
    const of = (task: string): unknown => prompts[order.indexOf(task)]?.prompt;
    expect(of('plain')).toBe('A baker of 34.');
    expect(of('chat')).toBe('[{"content": "And \\u00e9?", "role": "user"}]');
    expect(of('both')).toBe('{"feedback": "start", "high": 7, "low": 1}');
  });

  it('keeps in Parquet what the group says of each member', async () => {
    const file = out('text.parquet');
    expect(await farm.run('export', 'text', 'quick', '--format', 'parquet', '--out', file)).toMatchObject({ code: 0 });
    const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
    const expected = ['text', 'quick'].flatMap((run) =>
      completed(run).flatMap(({ group, member }) =>
        Array.from({ length: member.steps }, (_, step) => ({
          run,
          group: group.group,
          member: member.member,
          task_id: group.task_id,
          step,
          member_reward: member.reward,
          advantage: member.advantage,
          degenerate: group.degenerate,
          policy_version: null,
          trajectory_sha256: member.trajectory.sha256,
        })),
      ),
    );
    expect(rows.length).toBe(expected.length);
    for (const [i, row] of rows.entries()) expect(row).toMatchObject(expected[i] as object);
  });

  it('is as crucible files the very bytes that were recorded', async () => {
    const folder = out('files');
    expect(await farm.run('export', 'quick', '--format', 'crucible', '--out', folder)).toMatchObject({ code: 0 });
    const names = completed('quick').map(
      ({ group, member }) =>
        `quick-${String(group.group).padStart(6, '0')}-${String(member.member).padStart(4, '0')}.json`,
    );
    expect(readdirSync(folder).sort()).toEqual(names.sort());
    const first = path.join(folder, names[0] as string);
    expect(await farm.run('replay', first)).toMatchObject({ code: 0 });
    expect(await farm.run('export', first, '--format', 'records', '--out', out('one.jsonl'))).toMatchObject({
      code: 0,
    });
    expect(linesOf(out('one.jsonl')).length).toBeGreaterThan(0);
  });

  it('is found by its folder too, and as often as it is made it is the same', async () => {
    const folder = path.join(farm.data, 'store', 'runs', 'quick');
    for (const [target, name] of [
      ['quick', 'a.jsonl'],
      [folder, 'b.jsonl'],
    ] as const)
      expect(await farm.run('export', target, '--format', 'records', '--out', out(name))).toMatchObject({ code: 0 });
    expect(readFileSync(out('a.jsonl')).equals(readFileSync(out('b.jsonl')))).toBe(true);
  });
});

describe('a dataset that cannot be made', () => {
  const trajectory = (reward: string): string =>
    `{"version": 3, "trajectory": {"env_id": "x", "seed": 1, "initial_observation": {}, "env_config": {}, "transitions": [{"observation": "o", "action": "a", "reward": ${reward}, "done": true, "info": {}, "digest": ""}], "total_reward": 0.0, "final_observation": {}}}`;

  it.each([
    ['an unknown format', ['quick', '--format', 'csv', '--out', 'x'], /records, prompts, crucible, parquet/],
    ['no format', ['quick', '--out', 'x'], /--format/],
    ['an unknown run', ['nobody', '--format', 'records', '--out', 'x'], /nobody/],
    ['a reward that is no number', ['NAN', '--format', 'records', '--out', 'x'], /nan\.json: the reward of step 0/],
    ['a folder where a file is wanted', ['quick', '--format', 'records', '--out', 'taken'], /taken is a folder/],
    ['a folder that holds something', ['quick', '--format', 'crucible', '--out', 'taken'], /taken is there already/],
    [
      'a place that is not there',
      ['quick', '--format', 'parquet', '--out', 'no/where/x'],
      /no\/where\/x cannot be written/,
    ],
    ['two files of one name', ['SOUND', 'SOUND', '--format', 'crucible', '--out', 'x'], /would both be written as/],
  ])('is refused with one message, and leaves nothing: %s', async (_, args, message) => {
    const base = out('refused');
    rmSync(base, { recursive: true, force: true });
    mkdirSync(path.join(base, 'taken', 'here'), { recursive: true });
    writeFileSync(path.join(base, 'nan.json'), trajectory('NaN'));
    writeFileSync(path.join(base, 'sound.json'), trajectory('0.0'));
    const before = readdirSync(base, { recursive: true });
    const given = args.map((arg, i) =>
      /^[A-Z]+$/.test(arg)
        ? path.join(base, `${arg.toLowerCase()}.json`)
        : args[i - 1] === '--out'
          ? path.join(base, arg)
          : arg,
    );
    const ended = await farm.run('export', ...given);
    expect(ended).toMatchObject({ code: 2, stdout: '' });
    expect(ended.stderr).toMatch(message);
    expect(readdirSync(base, { recursive: true })).toEqual(before);
  });

  it('is not made from a store in which something was changed', async () => {
    const objects = path.join(farm.data, 'store', 'runs', 'quick', 'shards');
    const index = readdirSync(objects).find((name) => name.endsWith('.index.json.gz')) as string;
    const file = path.join(objects, index);
    const whole = readFileSync(file);
    writeFileSync(file, Buffer.from(whole.map((b, i) => (i === 20 ? b ^ 1 : b))));
    try {
      const ended = await farm.run('export', 'quick', '--format', 'records', '--out', out('broken.jsonl'));
      expect(ended).toMatchObject({ code: 2, stdout: '' });
      expect(readdirSync(farm.data).filter((name) => name.includes('broken'))).toEqual([]);
    } finally {
      writeFileSync(file, whole);
    }
  });
});
